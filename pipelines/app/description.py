"""Here: the interface description of a service: what it says of page sizes, and how it changed.

Not here: the lists in it that nobody reads yet (discover).
"""

import json
import logging
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from pipelines.app.session import AppSession
from pipelines.config.settings import DOCUMENTED, MOST_BY_PATH, MOST_IN_GENERAL, Stream
from pipelines.core.errors import PartnerSyncError
from pipelines.core.text import printable
from pipelines.http.client import ServiceClient
from pipelines.metadata.tables import ApiSpec

DESCRIPTION: Final = "/docs/openapi.json"  # unless `discover` was told another path
# A description may have it in the address of its server. Its paths then begin behind it.
VERSION: Final = "/v2"
LONGEST_CHANGE: Final = 1_000  # characters of a finding
# From one object to another, and from one schema to those that it combines: references can form a
# circle.
MOST_STEPS: Final = 100
DEEPEST: Final = 3
COMBINED: Final = ("allOf", "anyOf", "oneOf")
Json = dict[str, Any]
logger = logging.getLogger(__name__)


class Bounds(NamedTuple):
    """The page sizes that an operation allows; None: not stated."""

    least: int | None = None
    most: int | None = None


async def read_description(session: AppSession, client: ServiceClient) -> Json:
    """Return the description, which one request asks for; an empty one if it cannot be read.

    Its page sizes hold for this run. How it differs from the one that a person saw last, if any, is
    noted. What fails is logged where there is one to compare with: lists are read all the same.
    """
    name = client.connection.name
    document = Json()
    try:
        with session.metadata.transaction() as db:
            seen = db.get(ApiSpec, name)
        path = seen.path if seen else DESCRIPTION
        try:
            document = await client.read_document(path)
        except PartnerSyncError:
            # Where nobody has seen a description, there may be none: it is not worth a message.
            if seen:
                raise
            return document
        if seen:
            _note_change(session, seen, document)
    except Exception as error:  # noqa: BLE001 - no failure of the comparison reaches the lists
        logger.warning(
            "The interface description of `%s` was not compared with the one that `discover` "
            "showed. %s",
            name,
            session.redactor.clean(str(error)),
        )
    return document


def _note_change(session: AppSession, seen: ApiSpec, document: Json) -> None:
    """Keep how a description differs from the one that a person saw, for a check to find."""
    change = _change(seen.parts, digests(document))
    with session.metadata.transaction() as db:
        db.get_one(ApiSpec, seen.connection).change = change


def sized(document: Json, stream: Stream) -> Stream:
    """Return a stream whose pages have a size that the description allows.

    Where it states none, that of the interface document counts.
    """
    least, most = bounds(document, stream.path)
    most = most or MOST_BY_PATH.get(stream.path, MOST_IN_GENERAL)
    # Where a description contradicts itself, a page may still not have more than `most`.
    least = min(least or 1, most)
    size = max(min(stream.limit, most), least)
    documented = DOCUMENTED.get(stream.name, {})
    usual = documented.get("limit", Stream.model_fields["limit"].default)
    # Nobody has set the usual size, so there is nothing to correct in settings.toml.
    if stream.limit not in {size, usual}:
        logger.info(
            "%s: limit = %d is not a page size that the service allows. Pages have up to %d "
            "records. Correct limit in settings.toml to end this message.",
            stream.name,
            stream.limit,
            size,
        )
    return stream.model_copy(update={"limit": size})


def bounds(document: Json, path: str) -> Bounds:
    """Return what a description states of the parameter `limit` of a list."""
    minimums = list[int]()
    maximums = list[int]()
    for schema in _limit_schemas(document, path):
        minimums += _page_size(schema.get("minimum"))
        maximums += _page_size(schema.get("maximum"))
    return Bounds(max(minimums, default=None), min(maximums, default=None))


def _limit_schemas(document: Json, path: str) -> Iterator[Json]:
    """Yield what may have `minimum` and `maximum` of the parameter `limit`."""
    for name in (path, path.removeprefix(VERSION)):
        item = find(document, document, "paths", name)
        operation = find(document, item, "get")
        # Parameters of a path hold for each of its operations.
        for owner in (item, operation):
            for listed in find(document, owner, "parameters", kind=list):
                parameter = find(document, listed)
                if parameter.get("name") == "limit":
                    # In OpenAPI 2, the bounds are in the parameter itself.
                    yield parameter
                    yield from _schemas(document, parameter.get("schema"), DEEPEST)


def _schemas(document: Json, value: Any, depth: int) -> Iterator[Json]:
    """Yield a schema and those that it combines."""
    schema = find(document, value)
    yield schema
    if depth == 0:
        return
    for name in COMBINED:
        for part in find(document, schema, name, kind=list):
            yield from _schemas(document, part, depth - 1)


def _page_size(bound: Any) -> list[int]:
    """Return a bound as a page size, at least 1; an empty list if it is not a number."""
    # In Python, true and false are numbers, too.
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        return []
    return [max(1, int(bound))]


def digests(document: Json) -> dict[str, str]:
    """Return a digest of each route and each schema of a description, by name."""
    parts = Json()
    for name, schema in find(document, document, "components", "schemas").items():
        parts[f"schema {name}"] = schema
    for path in find(document, document, "paths"):
        for method, operation in find(document, document, "paths", path).items():
            parts[f"{method.upper()} {path}"] = operation
    digest_of = dict[str, str]()
    for name, part in parts.items():
        # Another order of the same fields is no change.
        text = json.dumps(part, sort_keys=True)
        digest_of[printable(name, 80)] = sha256(text.encode()).hexdigest()[:16]
    return digest_of


def _change(before: Json, now: Json) -> str | None:
    """Return what is new, gone or different, in words; None if nothing is."""
    in_both = now.keys() & before.keys()
    names_of = {
        "New": now.keys() - before.keys(),
        "Gone": before.keys() - now.keys(),
        "Changed": {name for name in in_both if now[name] != before[name]},
    }
    texts = [f"{kind}: {', '.join(sorted(names))}." for kind, names in names_of.items() if names]
    return printable(" ".join(texts), LONGEST_CHANGE) or None


def find(document: Json, value: Any, *names: str, kind: type[Any] = dict) -> Any:
    """Return an object or list in an object, references followed; an empty one without any."""
    rest = list(names)
    for _step in range(MOST_STEPS):
        if not isinstance(value, dict):
            break
        reference = value.get("$ref")
        if isinstance(reference, str):
            # Its path begins at the top of the document.
            value = document
            rest = [*_names_of(reference), *rest]
        elif rest:
            value = value.get(rest.pop(0))
        else:
            break
    if rest or not isinstance(value, kind):
        return kind()
    return value


def _names_of(reference: str) -> list[str]:
    """Return the names in a reference, such as `#/components/schemas/Usage`, from the top on."""
    names = unquote(reference).removeprefix("#/").split("/")
    # As RFC 6901 escapes them. The order matters: `~01` is the name `~1`.
    return [name.replace("~1", "/").replace("~0", "~") for name in names]
