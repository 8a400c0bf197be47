"""Before anything is read: may this connection come in, and does it still land for the same one?

Here: asking the service and the ledger's pin. Not here: what an identity is made of (api.identity).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import uuid4

from pipelines import streams
from pipelines.api import preflight
from pipelines.api.client import Client
from pipelines.api.page import Page
from pipelines.api.preflight import Answered, Report
from pipelines.errors import ConfigurationError, IdentityChanged, PartnerSyncError
from pipelines.run.contact import contact
from pipelines.run.session import Session
from pipelines.settings import Connection
from pipelines.state import identities, runs
from pipelines.state.identities import Identity, Pinned
from pipelines.streams.base import Stream

T = TypeVar("T")


class Gate:
    """What the streams of one run ask their pages through: it opens once, for all, or for none."""

    def __init__(
        self, session: Session, service: Client, connection: Connection, lists: Sequence[Stream]
    ) -> None:
        self._service = service
        self._opened = asyncio.ensure_future(_admit(session, service, connection, lists))

    async def page(self, stream: Stream, offset: int, limit: int | None = None) -> Page:
        """Return a page of a list, once it is clear for whom it is read.

        Raises IdentityChanged where the connection has landed for somebody else, and what whoami
        was refused with.
        """
        await asyncio.shield(self._opened)
        return await self._service.page(stream, offset, limit)

    async def close(self) -> None:
        """Ask no more: nobody wants to know, or the run was stopped before the answer."""
        self._opened.cancel()
        await asyncio.gather(self._opened, return_exceptions=True)


async def _admit(
    session: Session, service: Client, connection: Connection, lists: Sequence[Stream]
) -> None:
    """Ask who we are, before a page is kept; the first landing pins it."""
    found = await preflight.identify(service, connection, lists)
    now = session.clock.now()
    pinned = await asyncio.to_thread(identities.settle, session.ledger, connection.name, found, now)
    _compare(connection, pinned, found)


def _compare(connection: Connection, pinned: Pinned | None, found: Identity) -> None:
    if pinned is None or pinned.identity.digest == found.digest:
        return
    raise IdentityChanged(
        f"connection {connection.name} has landed for {pinned.identity} (since "
        f"{pinned.at:%Y-%m-%d %H:%M} UTC), and is {found} now. Nothing was read, so that the "
        f"tables of one do not take in another's. If it is meant: partner-sync connections "
        f"accept {connection.name}"
    )


@dataclass(frozen=True)
class Standing:
    """How a connection stands: whom it lands for, and its last run."""

    connection: Connection
    pinned: Pinned | None
    last: tuple[datetime, str | None] | None


def standings(session: Session) -> list[Standing]:
    """Return how every connection stands, without a request."""
    last = runs.last_by_connection(session.ledger)
    return [
        Standing(each, identities.pinned(session.ledger, name), last.get(name))
        for name, each in session.settings.connections().items()
    ]


def check(session: Session, connection: Connection) -> Report:
    """Ask who we are and for one record of each stream; nothing is archived."""
    lists = _lists(session, connection)

    async def asked(service: Client) -> Report:
        return await preflight.ask(service, connection, lists)

    return asyncio.run(_connected(session, connection, asked))


def test(session: Session, connection: Connection) -> Answered:
    """Ask who we are, and compare it with whom the connection lands for; keep nothing."""
    try:
        found = _found(session, connection)
        _compare(connection, identities.pinned(session.ledger, connection.name), found)
    except PartnerSyncError as error:
        return Answered(connection.name, str(error), error)
    return Answered(connection.name, str(found))


def accept(session: Session, connection: Connection, person: str) -> Identity:
    """Let a connection land for whom the service says that it is now; a person decides so."""
    found = _found(session, connection)
    identities.pin(session.ledger, connection.name, found, session.clock.now(), person)
    return found


def _found(session: Session, connection: Connection) -> Identity:
    lists = _lists(session, connection)

    async def asked(service: Client) -> Identity:
        return await preflight.identify(service, connection, lists)

    return asyncio.run(_connected(session, connection, asked))


def _lists(session: Session, connection: Connection) -> Sequence[Stream]:
    """Return the lists that a connection can read.

    Raises ConfigurationError where there is none.
    """
    lists = streams.known(session.settings, connection.surface)
    if not lists:
        raise ConfigurationError(
            f"connection {connection.name}: no list of the {connection.surface} surface is "
            "switched on; name one in settings.toml (partner-sync discover shows what there is)"
        )
    return lists


async def _connected(
    session: Session, connection: Connection, ask: Callable[[Client], Awaitable[T]]
) -> T:
    async with contact(session, connection, str(uuid4())) as service:
        return await ask(service)
