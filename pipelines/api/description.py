"""The interface description: OpenAPI 3 in JSON, read into what a sync has to know of it.

It is authoritative for bounds and schemas (Versioning). Here: its operations, and which of them are
lists. Not here: where it is found (interface), what a schema says (fields), what changed (changes).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, isfinite
from typing import Any
from urllib.parse import urlsplit

import msgspec

from pipelines.api.fields import Document, Schema
from pipelines.api.problem import UNREADABLE, cleaned
from pipelines.errors import ContractBroken
from pipelines.settings import Surface

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
PAGING = ("limit", "offset")
PATHS, PARAMETERS = 2_000, 200  # more than these are not looked at
# More records a page than this is faster than any night can land them, at 5 pages a second.
LARGEST_PAGE = 5_000


@dataclass(frozen=True)
class Parameter:
    """One parameter of an operation; bounds and default are those of whole numbers."""

    name: str
    place: str
    required: bool
    minimum: int | None
    maximum: int | None
    default: int | None
    text: str


@dataclass(frozen=True)
class Operation:
    """One operation; `item` is what a list's records are, None where it is no list."""

    method: str
    path: str
    surface: Surface | None
    parameters: tuple[Parameter, ...]
    item: Schema | None
    text: str

    @property
    def largest(self) -> int | None:
        """The largest page, in records; None where the description does not say."""
        found = [each.maximum for each in self.parameters if each.name == "limit"]
        return min(found[0], LARGEST_PAGE) if found and found[0] and found[0] > 0 else None

    @property
    def filters(self) -> tuple[str, ...]:
        """What can be asked for besides a page."""
        query = [each.name for each in self.parameters if each.place == "query"]
        return tuple(name for name in query if name not in PAGING)

    @property
    def needs(self) -> tuple[str, ...]:
        """What has to be known to ask at all: parts of the path, and other parameters."""
        inside = re.findall(r"\{[^}]*\}", self.path)
        asked = [f"{each.place} {each.name}" for each in self.parameters if each.required]
        return (*inside, *(each for each in asked if not each.startswith("path ")))


@dataclass(frozen=True)
class Description:
    """What a service says that it can do."""

    title: str
    version: str
    operations: tuple[Operation, ...]

    @property
    def lists(self) -> Mapping[str, Operation]:
        """The operations that answer with pages, by path."""
        return {each.path: each for each in self.operations if each.item is not None}


@lru_cache(maxsize=4)  # 16 ms, asked for by each stream of a run
def read(body: bytes, base: str = "") -> Description:
    """Read a description; paths are told below `base`, the path of the service's address.

    Raises ContractBroken for what is no OpenAPI 3 document in JSON (YAML is not read).
    """
    try:
        root = msgspec.json.decode(body)
    except (*UNREADABLE, RecursionError):
        raise ContractBroken("no JSON") from None
    version = root.get("openapi") if isinstance(root, dict) else None
    if not isinstance(version, str) or not version.startswith("3.") or not isinstance(root, dict):
        raise ContractBroken("no OpenAPI 3 document")
    document = Document(root)
    info = document.followed(root.get("info"))
    return Description(
        title=cleaned(str(info.get("title", ""))),
        version=cleaned(str(info.get("version", ""))),
        operations=tuple(_operations(document, base)),
    )


def _operations(document: Document, base: str) -> Iterator[Operation]:
    paths = document.root.get("paths")
    prefix = _prefix(document.root, base)
    for path, item in list(paths.items() if isinstance(paths, dict) else ())[:PATHS]:
        shared = document.followed(item)
        for method in METHODS:
            if isinstance(shared.get(method), dict):
                yield _operation(document, (method, prefix + path), shared, shared[method])


def _prefix(root: Mapping[str, Any], base: str) -> str:
    """Return what the server's address puts before every path, without the part that is ours."""
    servers = root.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else None
    url = first.get("url") if isinstance(first, dict) else None
    if not isinstance(url, str) or "{" in url:
        return ""
    try:
        path = urlsplit(url).path.rstrip("/")
    except ValueError:
        return ""
    return path.removeprefix(base.rstrip("/"))


def _operation(
    document: Document,
    which: tuple[str, str],
    shared: Mapping[str, Any],
    node: Mapping[str, Any],
) -> Operation:
    method, path = which
    text = node.get("description") or node.get("summary")
    return Operation(
        method=method.upper(),
        path=path,
        surface=_surface(document, node),
        parameters=_parameters(document, shared, node),
        item=_item(document, node) if method == "get" else None,
        text=text if isinstance(text, str) else "",
    )


def _surface(document: Document, node: Mapping[str, Any]) -> Surface | None:
    """Return whose credentials an operation takes; None where none or another kind is named."""
    wanted = node.get("security", document.root.get("security"))
    components = document.followed(document.root.get("components"))
    schemes = document.followed(components.get("securitySchemes"))
    names = [name for each in _listed(wanted) if isinstance(each, dict) for name in each]
    for scheme in (document.followed(schemes.get(name)) for name in names):
        kind = scheme.get("type")
        if kind == "apiKey":
            return "merchant"
        if kind in {"oauth2", "openIdConnect"} or str(scheme.get("scheme")).lower() == "bearer":
            return "partner"
    return None


def _parameters(
    document: Document, shared: Mapping[str, Any], node: Mapping[str, Any]
) -> tuple[Parameter, ...]:
    """Return an operation's parameters; its own stand before those of its path."""
    found: dict[tuple[str, str], Parameter] = {}
    every = [*_listed(shared.get("parameters")), *_listed(node.get("parameters"))]
    for each in every[:PARAMETERS]:
        one = document.followed(each)
        name, place = one.get("name"), one.get("in")
        if isinstance(name, str) and isinstance(place, str):
            found[name, place] = _parameter(document, name, place, one)
    return tuple(found.values())


def _parameter(document: Document, name: str, place: str, node: Mapping[str, Any]) -> Parameter:
    schema = document.followed(node.get("schema"))
    every = [schema, *(document.followed(each) for each in _variants(schema))]
    text = node.get("description")
    return Parameter(
        name=name,
        place=place,
        required=node.get("required") is True,
        minimum=_first(_least(each) for each in every),
        maximum=_first(_most(each) for each in every),
        default=_first(_whole(each.get("default")) for each in every),
        text=text if isinstance(text, str) else "",
    )


def _variants(schema: Mapping[str, Any]) -> list[Any]:
    words = ("allOf", "anyOf", "oneOf")
    return [each for word in words for each in _listed(schema.get(word))][:PARAMETERS]


def _most(schema: Mapping[str, Any]) -> int | None:
    """Return the largest value; what excludes it is a number since 3.1, and was a word before."""
    maximum, below = _whole(schema.get("maximum")), schema.get("exclusiveMaximum")
    if maximum is not None and below is True:
        return maximum - 1
    found = _numeric(below)
    return maximum if found is None else ceil(found) - 1


def _least(schema: Mapping[str, Any]) -> int | None:
    return _whole(schema.get("minimum"))


def _whole(value: Any) -> int | None:
    found = _numeric(value)
    return None if found is None else int(found)


def _numeric(value: Any) -> int | float | None:
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
    return value if usable else None


def _first(values: Iterator[int | None]) -> int | None:
    return next((each for each in values if each is not None), None)


def _item(document: Document, node: Mapping[str, Any]) -> Schema | None:
    """Return what the records of a list are; None where no pages are answered."""
    responses = document.followed(node.get("responses"))
    answer = document.followed(responses.get("200", responses.get("2XX")))
    content = document.followed(answer.get("content"))
    media = [each for name, each in content.items() if "json" in name.lower()]
    envelope = document.schema(document.followed(media[0]).get("schema")) if media else Schema()
    rows, paging = envelope.fields.get("data"), envelope.fields.get("pagination")
    if rows is None or paging is None or "array" not in rows.types or "object" not in paging.types:
        return None
    return rows.item or Schema()


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
