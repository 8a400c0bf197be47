"""Which lists the interface has, which of them are read, and what to write to read the others.

Asks for the interface description only: nothing is signed, and no slot of the budget is taken.
"""

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from pipelines import streams
from pipelines.api.description import Operation
from pipelines.api.interface import Found
from pipelines.api.problem import cleaned
from pipelines.run import interface
from pipelines.run.contact import contact
from pipelines.run.session import Session
from pipelines.settings import LIST_PATH, Connection, Surface
from pipelines.state import descriptions
from pipelines.state.descriptions import SeenChange
from pipelines.streams import STREAMS
from pipelines.streams.base import GENERAL_LIMIT, Stream, fits_a_table

LAST = 20  # changes shown


@dataclass(frozen=True)
class Listed:
    """One list of the interface; `offer` is what switches it on, empty where it is read."""

    path: str
    surface: Surface | None
    largest: int
    filters: tuple[str, ...]
    fields: tuple[str, ...]
    read: str
    offer: str = ""


@dataclass(frozen=True)
class Discovery:
    """What a service says that it has; `words` say where, or why nothing is known."""

    connections: tuple[str, ...]
    described: bool
    words: str
    lists: tuple[Listed, ...]
    changes: tuple[SeenChange, ...]


def discover(session: Session) -> tuple[Discovery, ...]:
    """Look at the description of every service that there is a connection to."""
    services: dict[str, list[Connection]] = {}
    for connection in session.settings.connections().values():
        services.setdefault(connection.base_url, []).append(connection)
    return tuple(_discovered(session, each) for each in services.values())


def _discovered(session: Session, connections: Sequence[Connection]) -> Discovery:
    """Ask a service once, in the name of the first connection to it."""
    connection = connections[0]
    found = asyncio.run(_look(session, connection))
    known = {stream.path: stream for stream in streams.known(session.settings)}
    described = found.description.lists if found.description else {}
    offers = _offers(described.values(), known)
    listed = [_described(each, known.get(path), offers) for path, each in described.items()]
    listed += [_undescribed(each) for path, each in known.items() if path not in described]
    return Discovery(
        connections=tuple(each.name for each in connections),
        described=found.description is not None,
        words=found.words,
        lists=tuple(sorted(listed, key=lambda each: (str(each.surface), each.path))),
        changes=descriptions.changes(session.ledger, connection.name)[-LAST:],
    )


async def _look(session: Session, connection: Connection) -> Found:
    async with contact(session, connection, str(uuid4())) as service:
        return await interface.look(session, service, connection)


def _described(operation: Operation, stream: Stream | None, offers: Mapping[str, str]) -> Listed:
    if stream is not None:
        read = _read(stream, operation.surface)
    elif operation.needs:
        read = cleaned(f"needs {', '.join(operation.needs)}")
    else:
        read = "available" if operation.path in offers else "at a path that cannot be set"
    return Listed(
        path=cleaned(operation.path),
        surface=operation.surface,
        largest=operation.largest or (stream.limit if stream else GENERAL_LIMIT),
        filters=tuple(map(cleaned, operation.filters)),
        fields=tuple(map(cleaned, operation.item.fields)) if operation.item else (),
        read=read,
        offer=offers.get(operation.path, ""),
    )


def _undescribed(stream: Stream) -> Listed:
    return Listed(stream.path, stream.surface, stream.limit, (), (), _read(stream, None))


def _read(stream: Stream, surface: Surface | None) -> str:
    """Say under which name a list is read, and where its credentials will not open it."""
    if surface not in {None, stream.surface}:
        return f"as {stream.name}, but it is of the {surface} surface: set that"
    declared = any(stream.path == each.path for each in STREAMS)
    return f"as {stream.name}" if declared else f"as {stream.name} (settings)"


def _offers(operations: Iterable[Operation], known: Mapping[str, Stream]) -> dict[str, str]:
    """Return, by path, the lines of settings.toml that switch on what is not read yet."""
    names = {stream.name for stream in known.values()}
    offers: dict[str, str] = {}
    for each in operations:
        plain = re.fullmatch(LIST_PATH, each.path) is not None
        if plain and not each.needs and each.path not in known:
            name = _name(each.path, names)
            names.add(name)
            surface = ['surface = "merchant"'] if each.surface == "merchant" else []
            offers[each.path] = "\n".join([f"[streams.{name}]", f'path = "{each.path}"', *surface])
    return offers


def _name(path: str, taken: Collection[str]) -> str:
    """Return a name for a list's tables: /v2/payment-methods -> payment_methods."""
    words = re.findall(r"[a-z0-9]+", path.removeprefix("/v2").lower())
    name = "_".join(words)[:40].strip("_")
    usable = fits_a_table(name) and name not in taken
    return name if usable else f"list_{len(taken) + 1}"
