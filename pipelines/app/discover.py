"""Lists that the service's interface description shows, and the lines that switch them on."""

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from pydantic import ValidationError

from pipelines.app.connect import open_service
from pipelines.app.description import Json, bounds, digests, find
from pipelines.app.session import AppSession
from pipelines.config.connections import Connection
from pipelines.config.settings import MOST_RECORDS, Stream
from pipelines.core import loop
from pipelines.core.errors import ConfigurationError
from pipelines.metadata.tables import ApiSpec

PREFIX: Final = "/v2/"  # of every business route
# Nothing that a server or httpx could take for another host, or for a folder above.
DOCUMENTATION: Final = re.compile(r"/docs(/[\w~-][\w.~-]*)+")
PAGES: Final = ("responses", "200", "content", "application/json", "schema", "properties")


class DescribedList(NamedTuple):
    """A list in a description, with the settings of a stream that would read it."""

    path: str
    surface: str
    limit: int


def discover(session: AppSession, name: str, path: str) -> list[Json]:
    """Return one row for each list in the interface description of a connection's service.

    `path` is that of the description. `state` says whether the connection reads the list; `lines`,
    of settings.toml, switch it on where this connection could read it. From now on, each sync
    compares the description with this one. Raises ConfigurationError and ServiceError.
    """
    connection = session.settings.connection(name)
    if not DOCUMENTATION.fullmatch(path):
        raise ConfigurationError(
            f"The description cannot be read from `{path}`: it must be a path below /docs/.",
            "Open the service's HTML documentation; it links the description.",
        )
    document = loop.run(_read_description(session, connection, path))
    seen = ApiSpec(
        connection=name,
        path=path,
        parts=digests(document),
        seen_at=session.clock.utc_now(),
        change=None,
    )
    with session.metadata.transaction() as db:
        db.merge(seen)
    names = set(session.settings.streams)
    rows = []
    for described in _described_lists(document):
        state = _state(session, connection, described)
        lines = _lines(described, names) if state == "not read" else ""
        rows.append(
            {
                "path": described.path,
                "surface": described.surface,
                "state": state,
                "lines": lines,
            }
        )
    return rows


async def _read_description(session: AppSession, connection: Connection, path: str) -> Json:
    async with open_service(session, connection) as client:
        return await client.read_object(path)


def _state(session: AppSession, connection: Connection, described: DescribedList) -> str:
    """Return what a connection makes of a list."""
    if "{" in described.path:
        return "cannot be read: its path needs an identifier"
    if not _can_be_stream(described.path):
        return "cannot be read: its path has other characters than a stream's"
    if described.surface != connection.surface:
        return f"needs a {described.surface} connection"
    for stream in session.settings.streams.values():
        if stream.path == described.path:
            verb = "skipped" if stream.name in connection.skip else "read"
            return f"{verb} as {stream.name}"
    return "not read"


def _can_be_stream(path: str, name: str = "x") -> bool:
    try:
        return bool(Stream(path=path, name=name))
    except ValidationError:
        return False


def _lines(described: DescribedList, names: set[str]) -> str:
    """Return the lines that switch a list on. Its name is none of `names`, and is added to them."""
    path = described.path
    name = re.sub(r"[^a-z0-9]+", "_", path.removeprefix(PREFIX).lower()).strip("_")
    if name in names or not _can_be_stream(path, name):
        name = f"list_{sha256(path.encode()).hexdigest()[:8]}"
    names.add(name)
    lines = [f"[streams.{name}]"]
    for key, value in described._asdict().items():
        if value != Stream.model_fields[key].default:
            lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines)


def _described_lists(document: Json) -> Iterator[DescribedList]:
    """Yield each route that answers with `data` and a `pagination`."""
    for path in sorted(find(document, document, "paths")):
        operation = find(document, document, "paths", path, "get")
        answer = find(document, operation, *PAGES)
        is_array = find(document, answer, "data").get("type") == "array"
        if path.startswith(PREFIX) and is_array and "pagination" in answer:
            yield DescribedList(path, _surface(document, operation), _limit(document, path))


def _surface(document: Json, operation: Json) -> str:
    """Return which surface a route belongs to: merchants are authenticated by an API key."""
    for requirement in find(document, operation, "security", kind=list):
        for name in find(document, requirement):
            scheme = find(document, document, "components", "securitySchemes", name)
            if scheme.get("type") == "apiKey":
                return "merchant"
    return "partner"


def _limit(document: Json, path: str) -> int:
    """Return the greatest page size that is stated, at most MOST_RECORDS; else the default."""
    most = bounds(document, path).most
    if most is None:
        return int(Stream.model_fields["limit"].default)
    return min(most, MOST_RECORDS)
