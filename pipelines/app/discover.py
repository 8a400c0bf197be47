"""Lists that the service's interface description shows, and the lines that switch them on."""

import json
import logging
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

from pydantic import ValidationError

from pipelines.app.connect import open_service
from pipelines.app.session import AppSession
from pipelines.config.connections import Connection
from pipelines.config.settings import MOST_RECORDS, Stream
from pipelines.core import loop
from pipelines.core.errors import ConfigurationError
from pipelines.core.text import printable
from pipelines.http.client import ServiceClient
from pipelines.metadata.tables import ApiSpec

PREFIX: Final = "/v2/"  # of every business route
DOCUMENTATION: Final = re.compile(r"/docs(/[\w~-][\w.~-]*)+")  # never another host
LONGEST_CHANGE: Final = 1_000  # characters of a finding
MOST_STEPS: Final = 100  # from one object to another: references can form a circle
PAGES: Final = ("responses", "200", "content", "application/json", "schema", "properties")
Json = dict[str, Any]
logger = logging.getLogger(__name__)


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
    seen = ApiSpec(connection=name, path=path, parts=_parts(document), seen_at=now, change=None)
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


async def compare_description(session: AppSession, client: ServiceClient) -> None:
    """Note how the interface description differs from the one that a person saw last, if any.

    What fails is logged, and the note stays as it is: the lists are read beside it.
    """
    name = client.connection.name
    try:
        with session.metadata.transaction() as db:
            seen = db.get(ApiSpec, name)
        if seen is None:
            return
        change = _change(seen.parts, _parts(await client.read_object(seen.path)))
        with session.metadata.transaction() as db:
            db.get_one(ApiSpec, name).change = change
    except Exception as error:  # noqa: BLE001 - no failure of the comparison reaches the lists
        logger.warning(
            "The interface description of `%s` was not compared with the one that `discover` "
            "showed. %s",
            name,
            session.redactor.clean(str(error)),
        )


def _parts(document: Json) -> dict[str, str]:
    """Return a digest of each route and each schema of a description, by name."""
    schemas = _find(document, document, "components", "schemas")
    parts = {f"schema {name}": schema for name, schema in schemas.items()}
    for path in _find(document, document, "paths"):
        for method, operation in _find(document, document, "paths", path).items():
            parts[f"{method.upper()} {path}"] = operation
    return {
        printable(name, 80): sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:16]
        for name, part in parts.items()
    }


def _change(before: Json, now: Json) -> str | None:
    """Return what is new, gone or different, in words; None if nothing is."""
    kinds = {
        "New": now.keys() - before.keys(),
        "Gone": before.keys() - now.keys(),
        "Changed": {name for name in now.keys() & before.keys() if now[name] != before[name]},
    }
    texts = [f"{kind}: {', '.join(sorted(names))}." for kind, names in kinds.items() if names]
    return printable(" ".join(texts), LONGEST_CHANGE) or None


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
    for path in sorted(_find(document, document, "paths")):
        operation = _find(document, document, "paths", path, "get")
        answer = _find(document, operation, *PAGES)
        is_array = _find(document, answer, "data").get("type") == "array"
        if path.startswith(PREFIX) and is_array and "pagination" in answer:
            surface, limit = _surface(document, operation), _limit(document, operation)
            yield {"path": path, "surface": surface, "limit": limit}


def _surface(document: Json, operation: Json) -> str:
    security = _find(document, operation, "security", kind=list)
    names = {name for each in security for name in _find(document, each)}
    schemes = (_find(document, document, "components", "securitySchemes", each) for each in names)
    return "merchant" if any(each.get("type") == "apiKey" for each in schemes) else "partner"


def _limit(document: Json, operation: Json) -> int:
    """Return the greatest page size that is stated and a stream may have, else the default."""
    for each in _find(document, operation, "parameters", kind=list):
        greatest = _find(document, each, "schema").get("maximum")
        if _find(document, each).get("name") == "limit" and isinstance(greatest, int | float):
            return max(1, min(int(greatest), MOST_RECORDS))
    return int(Stream.model_fields["limit"].default)


def _find(document: Json, value: Any, *names: str, kind: type[Any] = dict) -> Any:
    """Return an object or list in an object, references followed; an empty one without any."""
    rest = list(names)
    for _step in range(MOST_STEPS):
        if isinstance(value, dict) and isinstance(reference := value.get("$ref"), str):
            value, rest = document, [*reference.removeprefix("#/").split("/"), *rest]
        elif isinstance(value, dict) and rest:
            value = value.get(rest.pop(0))
        else:
            break
    return value if not rest and isinstance(value, kind) else kind()
