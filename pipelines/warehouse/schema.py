"""The shape of a stream's records: what is at every path, as narrow as the data allow.

A shape comes from a census of lexemes and only grows wider: boolean; integer; exact decimal; text
that is always a decimal or always a time; text. Kinds that share no column from the start are JSON
text. What is settled, because it was published, keeps its kind: what does not fit goes beside it,
as text. No floating point, ever.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

DIGITS = 38  # of DuckDB's widest DECIMAL
DECIMAL_TEXT = r"-?(0|[1-9][0-9]*)\.[0-9]+"
TIME_TEXT = (
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)


class Kind(StrEnum):
    """What a path holds."""

    NULL = "null"  # nothing but null so far
    BOOLEAN = "boolean"
    NUMBER = "number"
    DECIMAL_TEXT = "decimal text"  # strings, every one a decimal such as "12.50"
    MONEY = "number or decimal text"  # both in one column
    TIME = "time"  # strings, every one an RFC 3339 time
    TEXT = "text"
    OBJECT = "object"
    ARRAY = "array"
    JSON = "json"  # kinds that share no column: kept as JSON text
    KEY = "text or number"  # of a key whose kind changed: a number is kept as its text


DECIMALS = {Kind.NUMBER, Kind.DECIMAL_TEXT, Kind.MONEY}
_STRINGS = {Kind.DECIMAL_TEXT, Kind.TIME, Kind.TEXT}


@dataclass(frozen=True)
class Shape:
    """What is at one path; `whole` and `scale` count decimal digits before and after the point.

    `settled`: earlier manifests gave it, so its kind stays. `misfits`: values came that it does not
    hold, each whole in a text beside it. `rest`: of a table's rows, fields came for which there is
    no column, together in one text.
    """

    kind: Kind
    whole: int = 0
    scale: int = 0
    fields: Mapping[str, "Shape"] = field(default_factory=dict)
    item: "Shape | None" = None
    settled: bool = False
    misfits: bool = False
    rest: bool = False

    def widened(self, other: "Shape") -> "Shape":
        """Return the narrowest shape that holds what either holds; fields keep their order.

        Where this one is settled, the other is the census of a value: misfits are marked.
        """
        if other.kind is Kind.NULL:
            return self
        if self.kind is Kind.NULL:
            return replace(other, misfits=True) if self.misfits else other
        if self.kind is other.kind is Kind.OBJECT:
            return replace(self, fields=_merged(self.fields, other.fields))
        if self.kind is other.kind is Kind.ARRAY:
            items = [each.item for each in (self, other) if each.item is not None]
            return replace(self, item=_widest(items))
        wider = _scalar(self, other)
        if self.settled and wider.kind is not self.kind and not {self.kind, wider.kind} <= DECIMALS:
            wider = self if self.misfits else replace(self, misfits=True)
        elif wider is not self:
            wider = replace(wider, settled=self.settled, misfits=self.misfits)
        return wider

    def grown(self, value: Any) -> "Shape":
        """Return the shape that holds a value too, itself where it does already."""
        if self.kind is Kind.OBJECT and isinstance(value, dict):
            fields = {
                name: wider
                for name, each in value.items()
                if (wider := self.fields.get(name, NOTHING).grown(each)) != self.fields.get(name)
            }
            return replace(self, fields={**self.fields, **fields}) if fields else self
        if self.kind is Kind.ARRAY and isinstance(value, list):
            item = self.item
            for each in value:
                item = census(each) if item is None else item.grown(each)
            return self if item == self.item else replace(self, item=item)
        if self.kind is Kind.TEXT and isinstance(value, str):
            return self
        return self.widened(census(value))

    def settle(self) -> "Shape":
        """Return the shape as one that is published: every kind in it stays."""
        return replace(
            self,
            fields={name: each.settle() for name, each in self.fields.items()},
            item=None if self.item is None else self.item.settle(),
            settled=True,
        )

    def holds(self, value: Any) -> bool:
        """Tell whether a value, not null, is of this kind: what is inside has places of its own."""
        match self.kind:
            case Kind.JSON:
                return True
            case Kind.OBJECT:
                return isinstance(value, dict)
            case Kind.ARRAY:
                nothing = self.item is None or (
                    self.item.kind is Kind.NULL and not self.item.misfits
                )
                return isinstance(value, list) and not (nothing and any(map(_something, value)))
            case Kind.NULL:
                return False
        wider = _scalar(self, census(value))
        return (wider.kind, wider.whole, wider.scale) == (self.kind, self.whole, self.scale)


EMPTY = Shape(Kind.OBJECT)
NOTHING = Shape(Kind.NULL)


def _something(value: Any) -> bool:
    return value is not None


def _scalar(one: Shape, other: Shape) -> Shape:
    """Return what holds two kinds that are not both objects or both arrays."""
    kinds = {one.kind, other.kind}
    if one.kind is Kind.KEY:
        return one
    if kinds <= DECIMALS:
        kind = one.kind if len(kinds) == 1 else Kind.MONEY
        if kind is one.kind and one.whole >= other.whole and one.scale >= other.scale:
            return one
        return _decimal(kind, max(one.whole, other.whole), max(one.scale, other.scale))
    if len(kinds) == 1 or one.kind is Kind.JSON or (one.kind is Kind.TEXT and kinds <= _STRINGS):
        return one
    return Shape(Kind.TEXT if kinds <= _STRINGS else Kind.JSON)


def identified_by(shape: Shape, key: str | None) -> Shape:
    """Return a shape that keeps the texts of its key as they are: "1.1" and "1.10" are two keys."""
    field = shape.fields.get(key) if key is not None else None
    if key is None or field is None or field.kind not in {*_STRINGS, Kind.MONEY}:
        return shape
    kept = Shape(Kind.JSON if field.kind is Kind.MONEY else Kind.TEXT, settled=field.settled)
    return replace(shape, fields={**shape.fields, key: kept})


def rekeyed(shape: Shape, key: str) -> Shape:
    """Return a shape whose key may be a text or a number from now on."""
    return replace(shape, fields={**shape.fields, key: Shape(Kind.KEY, settled=True)})


def census(value: Any) -> Shape:
    """Return the shape of one JSON value whose numbers are int or Decimal."""
    match value:
        case None:
            return Shape(Kind.NULL)
        case bool():
            return Shape(Kind.BOOLEAN)
        case int() | Decimal():
            return _number(Kind.NUMBER, Decimal(value))
        case str():
            return _text(value)
        case list():
            return Shape(Kind.ARRAY, item=_widest(map(census, value)))
        case _:
            return Shape(Kind.OBJECT, fields={name: census(each) for name, each in value.items()})


def _text(value: str) -> Shape:
    if re.fullmatch(DECIMAL_TEXT, value):
        return _number(Kind.DECIMAL_TEXT, Decimal(value))
    if re.fullmatch(TIME_TEXT, value) and _is_date(value):
        return Shape(Kind.TIME)
    return Shape(Kind.TEXT)


def _is_date(value: str) -> bool:
    """Tell 30 February from a day: the pattern cannot."""
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _number(kind: Kind, value: Decimal) -> Shape:
    """Count the digits of a lexeme as written: 1.50 needs two places."""
    exponent = value.as_tuple().exponent
    scale = max(0, -exponent) if isinstance(exponent, int) else 0
    return _decimal(kind, max(0, value.adjusted() + 1), scale)


def _decimal(kind: Kind, whole: int, scale: int) -> Shape:
    """Return an exact decimal, or what keeps the digits where 38 are too few."""
    if whole + scale <= DIGITS:
        return Shape(kind, whole, scale)
    return Shape(Kind.TEXT if kind is Kind.DECIMAL_TEXT else Kind.JSON)


def _merged(ours: Mapping[str, Shape], theirs: Mapping[str, Shape]) -> dict[str, Shape]:
    merged = dict(ours)
    for name, shape in theirs.items():
        merged[name] = merged[name].widened(shape) if name in merged else shape
    return merged


def _widest(shapes: Iterable[Shape]) -> Shape | None:
    """Return the shape that holds all of them; None for none."""
    widest: Shape | None = None
    for shape in shapes:
        widest = shape if widest is None else widest.widened(shape)
    return widest


def to_json(shape: Shape) -> dict[str, Any]:
    """Return a shape as it is registered."""
    kept: dict[str, Any] = {"kind": shape.kind.value}
    kept |= {name: True for name in ("misfits", "rest") if getattr(shape, name)}
    if shape.kind in DECIMALS:
        kept |= {"whole": shape.whole, "scale": shape.scale}
    if shape.kind is Kind.OBJECT:
        kept["fields"] = [[name, to_json(each)] for name, each in shape.fields.items()]
    if shape.item is not None:
        kept["item"] = to_json(shape.item)
    return kept


def from_json(kept: Mapping[str, Any]) -> Shape:
    """Return the shape that `to_json` wrote, settled."""
    return Shape(
        kind=Kind(kept["kind"]),
        whole=kept.get("whole", 0),
        scale=kept.get("scale", 0),
        fields={name: from_json(each) for name, each in kept.get("fields", ())},
        item=from_json(kept["item"]) if "item" in kept else None,
        settled=True,
        misfits=kept.get("misfits", False),
        rest=kept.get("rest", False),
    )
