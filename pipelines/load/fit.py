"""Divides a record into what fits the columns and the rest, which goes to `_extra`."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pipelines.load.records import Number
from pipelines.load.schema import (
    DIGITS,
    HIGHEST,
    LOWEST,
    PATTERNS,
    Kind,
    Node,
    Path,
    decimal_of,
    decimal_size,
    shortest,
)

# In any time zone of a session, Python can hold these times.
EARLIEST, LATEST = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


NOTHING = object()  # the absence of a rest: None would be a value
_json_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass
class Divider:
    """Divides records. Counts by path the values without a place: kept in `_extra`, or discarded.

    `extra` names the member that holds the rest of an object that is a row of a table.
    """

    extra: str
    keeps_unknown: bool = True
    kept: Counter[Path] = field(default_factory=Counter)
    discarded: Counter[Path] = field(default_factory=Counter)

    def divide(self, record: dict[str, Any], root: Node) -> dict[str, Any]:
        """Return a record that fits a schema, with the rest as JSON text in one member.

        Raises ArithmeticError where a value would get lost: a defect.
        """
        before = self.discarded.total()
        row = self._row(*self._divide_object(record, root, ()))
        discarded = self.discarded.total() - before
        if count_values(record) != count_values(row, self.extra) + discarded:
            raise ArithmeticError("a value of a record has no place")
        return row

    def _row(self, fitting: dict[str, Any], rest: Any) -> dict[str, Any]:
        return {**fitting, self.extra: None if rest is NOTHING else _json_text(rest)}

    def _divide(self, value: Any, node: Node, path: Path) -> tuple[Any, Any]:
        if value is None:
            return None, NOTHING
        if node.kind is Kind.OBJECT and isinstance(value, dict):
            return self._divide_object(value, node, path)
        if node.kind is Kind.LIST and isinstance(value, list) and node.item:
            fitting = self._divide_list(value, node.item, (*path, None))
        else:
            fitting = fit_scalar(node, value)
        if fitting is not None:
            return fitting, NOTHING
        self.kept[path] += 1
        return None, value

    def _divide_object(self, value: dict[str, Any], node: Node, path: Path) -> tuple[Any, Any]:
        fitting, rest = {}, {}
        for name, each in value.items():
            child = node.fields.get(name)
            if child is not None:
                fitting[name], remains = self._divide(each, child, (*path, name))
            else:
                remains = self._unknown(each, (*path, name))
            if remains is not NOTHING:
                rest[name] = remains
        return fitting, rest or NOTHING

    def _unknown(self, value: Any, path: Path) -> Any:
        if value is None:
            return NOTHING
        if self.keeps_unknown:
            self.kept[path] += 1
            return value
        self.discarded[path] += count_values(value)
        return NOTHING

    def _divide_list(self, values: list[Any], item: Node, path: Path) -> list[Any] | None:
        if item.kind is Kind.OBJECT:
            return [self._divide_row(each, item, path) for each in values]
        fitting = [None if each is None else fit_scalar(item, each) for each in values]
        lost = any(
            new is None and old is not None for new, old in zip(fitting, values, strict=True)
        )
        return None if lost else fitting

    def _divide_row(self, value: Any, item: Node, path: Path) -> Any:
        """Return an item of a list of objects; what is no object is all rest."""
        if value is None:
            return None
        if isinstance(value, dict):
            fitting, rest = self._divide_object(value, item, path)
        else:
            self.kept[path] += 1
            fitting, rest = {}, value
        return self._row(fitting, rest)


def count_values(value: Any, extra: str | None = None) -> int:
    """Count what is neither null nor a container; member `extra` counts as the JSON it holds."""
    if isinstance(value, dict):
        rest = value.get(extra) if extra is not None else None
        inside = 0 if rest is None else count_values(json.loads(rest))
        return inside + sum(
            count_values(each, extra) for name, each in value.items() if name != extra
        )
    if isinstance(value, list):
        return sum(count_values(each, extra) for each in value)
    return 0 if value is None else 1


def fit_scalar(node: Node, value: Any) -> Any:
    """Return a value as the JSON reader gets it for a place; None where it does not fit."""
    if node.kind is Kind.BOOLEAN:
        return value if isinstance(value, bool) else None
    number = decimal_of(node, value)
    if number is not None:
        fitting = _fit_number(node, number)
        return fitting if fitting is not None and Decimal(fitting) == number else None
    if isinstance(value, str) and not isinstance(value, Number):
        return value if node.kind is Kind.TEXT or fits_time(node.kind, value) else None
    return None


def _fit_number(node: Node, number: Decimal) -> Any:
    size = decimal_size(shortest(number))
    if size is None:
        return None
    digits, scale = size
    if node.kind is Kind.INTEGER:
        return int(number) if not scale and LOWEST <= number <= HIGHEST else None
    if node.kind is Kind.TEXT:
        return f"{number:f}"
    if scale > node.scale or digits > DIGITS - node.scale:
        return None
    plain = f"{shortest(number):f}"
    return plain if node.kind is Kind.DECIMAL_TEXT else Decimal(plain)


def fits_time(kind: Kind, value: str) -> bool:
    """Return whether a text is a day or a time that a column of this kind holds."""
    if kind not in {Kind.DATE, Kind.TIME} or not re.fullmatch(PATTERNS[kind], value):
        return False
    try:
        if kind is Kind.DATE:
            return bool(date.fromisoformat(value))
        return EARLIEST <= datetime.fromisoformat(value).astimezone(UTC) < LATEST
    except (ValueError, OverflowError):
        return False
