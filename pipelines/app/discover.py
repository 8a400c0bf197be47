"""Lists that the service's interface description shows, and the lines that switch them on."""

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

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
DOCUMENTATION: Final = re.compile(r"/docs(/[\w~-][\w.~-]*)+")  # never another host
PAGES: Final = ("responses", "200", "content", "application/json", "schema", "properties")


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
    now, names = session.clock.utc_now(), set(session.settings.streams)
    seen = ApiSpec(connection=name, path=path, parts=digests(document), seen_at=now, change=None)
    with session.metadata.transaction() as db:
        db.merge(seen)
    rows = []
    for found in _find_lists(document):
        state = _state(session, connection, found)
        lines = _lines(found, names) if state == "not read" else ""
        del found["limit"]
        rows.append({**found, "state": state, "lines": lines})
    return rows


async def _read_description(session: AppSession, connection: Connection, path: str) -> Json:
    async with open_service(session, connection) as client:
        return await client.read_object(path)


def _state(session: AppSession, connection: Connection, found: Json) -> str:
    """Return what a connection makes of a list."""
    path, surface = found["path"], found["surface"]
    streams = [each.name for each in session.settings.streams.values() if each.path == path]
    if "{" in path:
        return "cannot be read: its path needs an identifier"
    if not _can_be_stream(path):
        return "cannot be read: its path has other characters than a stream's"
    if surface != connection.surface:
        return f"needs a {surface} connection"
    if streams:
        return f"{'skipped' if streams[0] in connection.skip else 'read'} as {streams[0]}"
    return "not read"


def _can_be_stream(path: str, name: str = "x") -> bool:
    try:
        return bool(Stream(path=path, name=name))
    except ValidationError:
        return False


def _lines(found: Json, names: set[str]) -> str:
    """Return the lines that switch a list on. Its name is none of `names`, and is added to them."""
    name = re.sub(r"[^a-z0-9]+", "_", found["path"].removeprefix(PREFIX).lower()).strip("_")
    if name in names or not _can_be_stream(found["path"], name):
        name = f"list_{sha256(found['path'].encode()).hexdigest()[:8]}"
    names.add(name)
    fields = Stream.model_fields
    settings = {key: value for key, value in found.items() if value != fields[key].default}
    lines = (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in settings.items())
    return "\n".join([f"[streams.{name}]", *lines])


def _find_lists(document: Json) -> Iterator[Json]:
    """Yield settings of a stream for each route that answers with `data` and a `pagination`."""
    for path in sorted(find(document, document, "paths")):
        operation = find(document, document, "paths", path, "get")
        answer = find(document, operation, *PAGES)
        is_array = find(document, answer, "data").get("type") == "array"
        if path.startswith(PREFIX) and is_array and "pagination" in answer:
            surface, limit = _surface(document, operation), _limit(document, path)
            yield {"path": path, "surface": surface, "limit": limit}


def _surface(document: Json, operation: Json) -> str:
    security = find(document, operation, "security", kind=list)
    names = {name for each in security for name in find(document, each)}
    schemes = (find(document, document, "components", "securitySchemes", each) for each in names)
    return "merchant" if any(each.get("type") == "apiKey" for each in schemes) else "partner"


def _limit(document: Json, path: str) -> int:
    """Return the greatest page size that is stated, at most MOST_RECORDS; else the default."""
    most = bounds(document, path).most
    default = int(Stream.model_fields["limit"].default)
    return default if most is None else min(most, MOST_RECORDS)
