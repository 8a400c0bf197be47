"""What a JSON schema says of a record: its fields, their types, which of them are always there.

Here: schemas of OpenAPI 3.0 and 3.1 to frozen values, whatever somebody may have written into them:
references that go in circles, thousands of variants, no schema at all. Not here: operations.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any
from urllib.parse import unquote

NULL = "null"
DEEPEST, VARIANTS, NODES = 24, 32, 50_000
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object"}
_NAMES |= {list: "array", type(None): NULL}


@dataclass(frozen=True)
class Schema:
    """What one place may hold: JSON's names of types, null among them; none means anything.

    `fields` are an object's, `required` those that are always there, `item` is an array's; `open`
    says that an object's keys are data themselves.
    """

    types: frozenset[str] = frozenset()
    format: str = ""
    text: str = ""
    fields: Mapping[str, "Schema"] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    item: "Schema | None" = None
    open: bool = False

    @property
    def nullable(self) -> bool:
        """Whether null may be there."""
        return not self.types or NULL in self.types

    @property
    def words(self) -> str:
        """The type in words: `string (date-time)`, `array of integer`."""
        types = sorted(self.types - {NULL})
        if types == ["array"] and self.item is not None:
            return f"array of {self.item.words}"
        words = " or ".join(types) or (NULL if self.types else "anything")
        return f"{words} ({self.format})" if self.format else words


ANYTHING = Schema()


class Document:
    """A description as JSON; reads its schemas, and gives up quietly where they have no end."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self._left = NODES

    def followed(self, node: Any) -> Mapping[str, Any]:
        """Return an object, or the one that its reference leads to; an empty one for none."""
        for _step in range(DEEPEST):
            if not isinstance(node, dict) or not isinstance(node.get("$ref"), str):
                break
            node = self._at(node["$ref"])
        return node if isinstance(node, dict) else {}

    def schema(self, node: Any, trail: tuple[str, ...] = ()) -> Schema:
        """Read a schema; `trail` are the references on the way to it, one for each level."""
        if not isinstance(node, dict) or len(trail) >= DEEPEST or self._left <= 0:
            return ANYTHING
        self._left -= 1
        deeper = (*trail, "")
        parts = [self._own(node, deeper)]
        reference = node.get("$ref")
        if isinstance(reference, str) and reference not in trail:
            parts.append(self.schema(self._at(reference), (*trail, reference)))
        parts += [self.schema(each, deeper) for each in _some(node.get("allOf"))]
        for word in ("anyOf", "oneOf"):
            if variants := [self.schema(each, deeper) for each in _some(node.get(word))]:
                parts.append(reduce(_either, variants))
        return reduce(_both, parts)

    def _own(self, node: Mapping[str, Any], deeper: tuple[str, ...]) -> Schema:
        """Read what a schema says by itself."""
        properties, required = node.get("properties"), node.get("required")
        fields = properties if isinstance(properties, dict) else {}
        additional = node.get("additionalProperties")
        return Schema(
            types=_types(node),
            format=_text(node.get("format")),
            text=_text(node.get("description")),
            fields={name: self.schema(each, deeper) for name, each in fields.items()},
            required=frozenset(filter(_is_text, required if isinstance(required, list) else ())),
            item=self.schema(node["items"], deeper) if "items" in node else None,
            open=additional is True or isinstance(additional, dict),
        )

    def _at(self, reference: str) -> Any:
        """Return what a reference inside this document leads to; None where it leads nowhere."""
        if not reference.startswith("#"):
            return None
        node: Any = self.root
        for step in unquote(reference[1:]).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            node = node.get(name) if isinstance(node, dict) else None
        return node


def _types(node: Mapping[str, Any]) -> frozenset[str]:
    """Return the types that a schema names, or that its other words speak of."""
    named = node.get("type")
    values = node.get("enum") if isinstance(node.get("enum"), list) else None
    found: Iterable[Any] = named if isinstance(named, list) else [named]
    types = {each for each in found if isinstance(each, str)}
    if not types and ("const" in node or values):
        types = {_NAMES[type(each)] for each in (values or [node.get("const")])}
    if not types and isinstance(node.get("properties"), dict):
        types = {"object"}
    if not types and "items" in node:
        types = {"array"}
    return frozenset(types | ({NULL} if node.get("nullable") is True else set()))


def _both(one: Schema, other: Schema) -> Schema:
    """Return what holds where both hold; what contradicts itself is taken as either."""
    return Schema(
        types=_common(one.types, other.types),
        format=one.format or other.format,
        text=one.text or other.text,
        fields=_merged(one.fields, other.fields, _both),
        required=one.required | other.required,
        item=one.item if other.item is None else other.item,
        open=one.open or other.open,
    )


def _common(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """Return the types that both allow; null stays where either names it (OpenAPI 3.0's way)."""
    null = (one | other) & {NULL}
    ours, theirs = one - null, other - null
    if "number" in ours | theirs and "integer" in (ours ^ theirs):
        ours, theirs = ours - {"number"}, theirs - {"number"}
    return (ours & theirs or ours | theirs) | null


def _either(one: Schema, other: Schema) -> Schema:
    """Return what holds where one of the two holds."""
    objects = [each for each in (one, other) if each.fields]
    items = [each.item for each in (one, other) if each.item is not None]
    return Schema(
        types=one.types | other.types if one.types and other.types else frozenset(),
        format=one.format if other.types == {NULL} else other.format,
        text=one.text or other.text,
        fields=_merged(one.fields, other.fields, _either),
        required=frozenset.intersection(*(each.required for each in objects))
        if objects
        else frozenset(),
        item=reduce(_either, items) if items else None,
        open=one.open or other.open,
    )


def _merged(
    one: Mapping[str, Schema], other: Mapping[str, Schema], join: "Any"
) -> dict[str, Schema]:
    shared = {name: join(one[name], each) for name, each in other.items() if name in one}
    return {**one, **other, **shared}


def _some(variants: Any) -> list[Any]:
    return variants[:VARIANTS] if isinstance(variants, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
