"""The values of a record into the places that a shape has for them.

What has none stays whole, as text. Here: the exact path's conversion, value by value, and a count
of what is beside its column or out of the tables. Not here: the shape (schema), which values are
admitted (room).
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa

from pipelines.warehouse.arrow import MISFIT, VALUE, number_type, rest_name
from pipelines.warehouse.schema import DECIMALS, Kind, Shape

ITEM = "[*]"  # the step of a path into an array
NUMBER = object()  # stands for any number that a text spells
Path = tuple[str, ...]
_json_text = msgspec.json.Encoder(decimal_format="number")


@dataclass
class Aside:
    """How many values of each path have no column: kept as text, or left out of the tables."""

    kept: Counter[Path] = field(default_factory=Counter)
    left_out: Counter[Path] = field(default_factory=Counter)

    def add(self, other: "Aside") -> None:
        """Count another page's."""
        self.kept.update(other.kept)
        self.left_out.update(other.left_out)


@dataclass(frozen=True)
class Placing:
    """Places the values of records, and counts those that have no column."""

    shape: Shape
    aside: Aside = field(default_factory=Aside)

    def record(self, value: Mapping[str, Any]) -> Any:
        """Return a record as Arrow takes it under the landed type of the shape."""
        return self._placed(value, self.shape, ())

    def _placed(self, value: Any, shape: Shape, path: Path) -> Any:
        if value is None:
            return None
        if not shape.misfits:
            return self._fitting(value, shape, path)
        if shape.holds(value):
            return {VALUE: self._fitting(value, shape, path), MISFIT: None}
        self.aside.kept[path] += 1
        return {VALUE: None, MISFIT: whole(value, shape)}

    def _fitting(self, value: Any, shape: Shape, path: Path) -> Any:
        match shape.kind:
            case Kind.OBJECT:
                placed = {
                    name: self._placed(value.get(name), each, (*path, name))
                    for name, each in shape.fields.items()
                }
                if shape.rest or not path or path[-1] == ITEM:
                    rest = self._rest(value, shape, path)
                    return placed | ({rest_name(shape): rest} if shape.rest else {})
                return placed
            case Kind.ARRAY:
                item = shape.item
                steps = (*path, ITEM)
                return [None if item is None else self._placed(each, item, steps) for each in value]
            case Kind.JSON:
                return _json_text.encode(value).decode()
            case Kind.KEY if not isinstance(value, str):
                value = _plain(value)
            case Kind.NUMBER | Kind.MONEY:
                return int(value) if number_type(shape) == pa.int64() else Decimal(value)
        return value

    def _rest(self, value: Mapping[str, Any], shape: Shape, path: Path) -> str | None:
        """Return the fields of a table's row that have no column, as JSON; None for none."""
        counts = self.aside.kept if shape.rest else self.aside.left_out
        rest = _unknown(value, shape, path, counts)
        return _json_text.encode(rest).decode() if rest else None


def _unknown(
    value: Mapping[str, Any], shape: Shape, path: Path, counts: Counter[Path]
) -> dict[str, Any]:
    """Return the fields that a shape does not know, nested as they came, and count them."""
    rest: dict[str, Any] = {}
    for name, each in value.items():
        known = shape.fields.get(name)
        if known is None:
            counts[*path, name] += each is not None
            rest[name] = each
        elif known.kind is Kind.OBJECT and isinstance(each, dict):
            inside = _unknown(each, known, (*path, name), counts)
            rest |= {name: inside} if inside else {}
    return rest


def whole(value: Any, shape: Shape) -> str:
    """Return a value that does not fit a column as text: nothing of it is lost.

    A text stands as it is, unless it would read as the JSON of something else; a column of decimals
    makes no difference between a number and the text of one.
    """
    if not isinstance(value, str):
        return _json_text.encode(value).decode()
    try:
        read = _READER.decode(value)
    except (ValueError, RecursionError):
        return value
    number = read is NUMBER and shape.kind in DECIMALS
    return value if number else _json_text.encode(value).decode()


def _plain(number: int | Decimal) -> str:
    """Return a number as text, without trailing zeros: 1.50 and 1.5 are one key."""
    text = f"{Decimal(number):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def read_back(text: str) -> Any:
    """Return a value that `whole` gave as text; where a number and its text are one, the number."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_refused)
    except (ValueError, ArithmeticError, RecursionError):
        return text


def _refused(name: str) -> Any:
    raise ValueError(name)


def _number(_lexeme: str) -> object:
    return NUMBER


_READER = json.JSONDecoder(parse_float=_number, parse_int=_number, parse_constant=_refused)
