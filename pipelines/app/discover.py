"""Lists that the service's interface description shows, and the lines that switch them on."""

import asyncio
import json
import re
from hashlib import sha256
from typing import Any, Final

from pipelines.app.connect import open_service
from pipelines.app.session import AppSession
from pipelines.config.connections import Connection
from pipelines.config.streams import Stream
from pipelines.core.clock import utc_now
from pipelines.core.errors import ConfigurationError, ServiceError
from pipelines.core.text import printable
from pipelines.http.client import ServiceClient
from pipelines.metadata.tables import ApiSpec

PREFIX: Final = "/v2/"  # of every business route
DOCUMENTATION: Final = re.compile(r"/docs(/[\w~-][\w.~-]*)+")  # never another host
DEFAULT_LIMIT: Final = Stream.model_fields["limit"].default
MOST_NAMED: Final = 10  # parts of the description in a finding
MOST_REFERENCES: Final = 20  # that are followed from one schema
Json = dict[str, Any]


def discover(session: AppSession, name: str, path: str) -> list[Json]:
    """Return one row for each list in the interface description of a connection's service.

    `path` is that of the description. `state` says whether the connection reads the list; `lines`,
    of settings.toml, switch it on where it could. From now on, each sync compares the description
    with this one. Raises ConfigurationError and ServiceError.
    """
    connection = session.settings.connection(name)
    if not DOCUMENTATION.fullmatch(path):
        raise ConfigurationError(
            f"The description cannot be read from `{path}`: it must be a path below /docs/.",
            "Open the service's HTML documentation; it links the description.",
        )
    document = asyncio.run(_read_description(session, connection, path))
    now = utc_now(session.clock)
    with session.metadata.transaction() as db:
        seen = ApiSpec(connection=name, path=path, parts=_parts(document), seen_at=now)
        db.merge(seen).change = None
    found = []
    for route, operations in sorted(_table(document, "paths").items()):
        operation = _table(operations, "get")
        if route.startswith(PREFIX) and _is_list(document, operation):
            found.append(_row(session, connection, document, route, operation))
    return found


async def _read_description(session: AppSession, connection: Connection, path: str) -> Json:
    async with open_service(session, connection) as client:
        return await client.read_object(path)


async def compare_description(session: AppSession, client: ServiceClient) -> None:
    """Note how the interface description differs from the one that a person saw last, if any."""
    name = client.connection.name
    with session.metadata.transaction() as db:
        seen = db.get(ApiSpec, name)
    if seen is None:
        return
    try:
        change = _change(seen.parts, _parts(await client.read_object(seen.path)))
    except ServiceError as error:
        change = f"It could not be read: {session.redactor.clean(str(error))}"
    with session.metadata.transaction() as db:
        db.get_one(ApiSpec, name).change = change


def _parts(document: Json) -> dict[str, str]:
    """Return a digest of each route and each schema of a description, by name."""
    parts = {
        f"{method.upper()} {path}": operation
        for path, operations in _table(document, "paths").items()
        for method, operation in _table(operations).items()
    }
    schemas = _table(document, "components", "schemas")
    parts |= {f"schema {name}": schema for name, schema in schemas.items()}
    return {
        printable(name, 80): sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:16]
        for name, part in parts.items()
    }


def _change(before: Json, now: Json) -> str | None:
    """Return what is new, gone or different, in words; None if nothing is."""
    kinds = {
        "New": sorted(now.keys() - before.keys()),
        "Gone": sorted(before.keys() - now.keys()),
        "Changed": sorted(name for name in now.keys() & before.keys() if now[name] != before[name]),
    }
    texts = [
        f"{kind}: {', '.join(names[:MOST_NAMED])}{', …' if len(names) > MOST_NAMED else ''}."
        for kind, names in kinds.items()
        if names
    ]
    return " ".join(texts) or None


def _row(
    session: AppSession, connection: Connection, document: Json, path: str, operation: Json
) -> Json:
    streams = [each.name for each in session.settings.streams.values() if each.path == path]
    surface, lines = _surface(document, operation), ""
    if "{" in path:
        state = "cannot be read: its path needs an identifier"
    elif surface != connection.surface:
        state = f"needs a {surface} connection"
    elif streams:
        state = f"{'skipped' if streams[0] in connection.skip else 'read'} as {streams[0]}"
    else:
        state = "not read"
    if not streams and "{" not in path:
        lines = _lines(path, surface, _limit(operation))
    return {"path": path, "surface": surface, "state": state, "lines": lines}


def _lines(path: str, surface: str, limit: int) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", path.removeprefix(PREFIX).lower()).strip("_")
    lines = [f"[streams.{name}]", f'path = "{path}"']
    lines += [f'surface = "{surface}"'] if surface != "partner" else []
    lines += [f"limit = {limit}"] if limit != DEFAULT_LIMIT else []
    return "\n".join(lines)


def _surface(document: Json, operation: Json) -> str:
    schemes = _table(document, "components", "securitySchemes")
    needed = {name for each in operation.get("security") or [] for name in each}
    is_merchant = any(_table(schemes, name).get("type") == "apiKey" for name in needed)
    return "merchant" if is_merchant else "partner"


def _limit(operation: Json) -> int:
    """Return the greatest page size of a list that is stated, else the default."""
    bounds = [
        _table(each, "schema").get("maximum")
        for each in operation.get("parameters") or []
        if isinstance(each, dict) and each.get("name") == "limit"
    ]
    return next((int(each) for each in bounds if isinstance(each, int | float)), DEFAULT_LIMIT)


def _is_list(document: Json, operation: Json) -> bool:
    """Return whether a route answers with pages: an array `data` and a `pagination`."""
    content = _table(operation, "responses", "200", "content", "application/json")
    properties = _table(_resolve(document, _table(content, "schema")), "properties")
    is_array = _resolve(document, _table(properties, "data")).get("type") == "array"
    return is_array and "pagination" in properties


def _resolve(document: Json, schema: Json) -> Json:
    """Follow references within the document."""
    for _reference in range(MOST_REFERENCES):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            break
        schema = _table(document, *reference.removeprefix("#/").split("/"))
    return schema


def _table(value: Any, *names: str) -> Json:
    """Return a table within a table; an empty one where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
