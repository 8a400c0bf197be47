"""The schema of a stream: what is at every path of its records, over all scans.

A schema only grows: null < BOOLEAN; BIGINT < DECIMAL(38,0) < DECIMAL(38,s); DATE; TIMESTAMPTZ;
VARCHAR; objects; lists. A value that does not fit its place goes to `_extra` as it is spelled.
"""

import re
from dataclasses import dataclass, field
from decimal import MAX_PREC, Context, Decimal
from enum import StrEnum
from typing import Any, TypeAlias

from pipelines.load.records import Number

_EXACT = Context(prec=MAX_PREC)  # the default would round at 28 digits
DIGITS = 38  # of the widest decimal
MOST_COLUMNS = 500
LOWEST, HIGHEST = -(2**63), 2**63 - 1
LONGEST_NUMBER = 400  # characters; a longer one fits no column
Path: TypeAlias = tuple[str | None, ...]
"""Names of members from the record inwards; None stands for the items of a list."""


class Kind(StrEnum):
    """What a place holds. The kinds of text are all sent as text."""

    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DECIMAL_TEXT = "decimal text"
    DATE = "date"
    TIME = "time"
    TEXT = "text"
    OBJECT = "object"
    LIST = "list"


TEXTS = frozenset({Kind.DECIMAL_TEXT, Kind.DATE, Kind.TIME, Kind.TEXT})
DECIMALS = frozenset({Kind.DECIMAL, Kind.DECIMAL_TEXT})
_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
PATTERNS = {
    Kind.TIME: rf"^{_DAY}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{{1,6}})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$",
    Kind.DATE: rf"^{_DAY}$",
    Kind.DECIMAL_TEXT: r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$",
}
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?\Z")


@dataclass
class Node:
    """One place in the records of a stream.

    `scale` and `digits` count the digits of a decimal behind and before the point. `candidates` are
    the kinds that every text seen in this scan fits; only a place that is new in it has any. `name`
    is the column, or the first part of its columns; of a list of objects also `table` is given.
    """

    kind: Kind = Kind.NULL
    scale: int = 0
    digits: int = 0
    fields: dict[str, "Node"] = field(default_factory=dict)
    item: "Node | None" = None
    candidates: set[Kind] = field(default_factory=set)
    name: str = ""
    table: str = ""
    first_scan: str = ""

    @property
    def has_rows(self) -> bool:
        """Whether this is a list of objects, which has a table of its own."""
        return self.item is not None and self.item.kind is Kind.OBJECT


@dataclass
class Schema:
    """The schema of one stream; `grows` is False where it must stay as it is."""

    root: Node = field(default_factory=lambda: Node(Kind.OBJECT))
    grows: bool = True
    columns: int = 0
    overflows: bool = False

    def widen(self, record: dict[str, Any]) -> None:
        """Make room for a record, as far as there may be more columns and wider types."""
        if self.grows:
            self._widen(self.root, record, in_list=False)

    def _widen(self, node: Node, value: Any, *, in_list: bool) -> None:
        if value is None:
            return
        if node.kind is Kind.NULL:
            _start(node, value, in_list=in_list)
        if node.kind is Kind.OBJECT and isinstance(value, dict):
            self._widen_object(node, value)
        elif node.kind is Kind.LIST and isinstance(value, list):
            node.item = node.item or Node()
            for each in value:
                if not isinstance(each, list):  # a list in a list has no column
                    self._widen(node.item, each, in_list=True)
        elif (decimal := decimal_of(node, value)) is not None:
            _widen_number(node, decimal)

    def _widen_object(self, node: Node, value: dict[str, Any]) -> None:
        for name, each in value.items():
            child = node.fields.get(name)
            is_new = child is None
            if child is None:
                if self.columns >= MOST_COLUMNS:
                    self.overflows = True
                    continue
                child = node.fields[name] = Node()
                self.columns += 1
            self._widen(child, each, in_list=False)
            self.columns -= is_new and child.kind is Kind.OBJECT
        if not node.fields and node is not self.root:
            node.kind = Kind.NULL  # an object without members has no column


def _start(node: Node, value: Any, *, in_list: bool) -> None:
    """Give a place without values the kind of its first value."""
    match value:
        case bool():
            node.kind = Kind.BOOLEAN
        case Number():
            node.kind = Kind.INTEGER if _is_number(value) else Kind.NULL
        case str():
            node.kind = Kind.TEXT
            node.candidates = set() if in_list else set(PATTERNS)
        case list():
            node.kind = Kind.LIST
        case dict():
            node.kind = Kind.OBJECT


def _is_number(value: Number) -> bool:
    return decimal_size(Decimal(value)) is not None if len(value) <= LONGEST_NUMBER else False


def decimal_of(node: Node, value: Any) -> Decimal | None:
    """Return the number that a value is for a place of numbers; None where it is none there."""
    if isinstance(value, Number):
        wanted = node.kind in {Kind.INTEGER, Kind.DECIMAL, Kind.DECIMAL_TEXT}
        wanted |= Kind.DECIMAL_TEXT in node.candidates
    else:
        text = isinstance(value, str) and node.kind in DECIMALS
        wanted = text and _DECIMAL.match(value) is not None
    return Decimal(value) if wanted and len(value) <= LONGEST_NUMBER else None


def decimal_size(number: Decimal) -> tuple[int, int] | None:
    """Return digits before and behind the point, as spelled if 38 are enough, else at least."""
    for each in (number, shortest(number)):
        exponent = each.as_tuple().exponent
        if not isinstance(exponent, int):
            return None
        scale, digits = max(0, -exponent), max(0, each.adjusted() + 1) if each else 0
        if scale + digits <= DIGITS:
            return digits, scale
    return None


def shortest(number: Decimal) -> Decimal:
    """Return a number without zeros at its end."""
    return number.normalize(_EXACT)


def _widen_number(node: Node, number: Decimal) -> None:
    """Make a place wide enough for a number, unless 38 digits are too few for all of its values."""
    found = decimal_size(number)
    if found is None or node.kind is Kind.TEXT:
        return
    digits, scale = max(found[0], node.digits), max(found[1], node.scale)
    if digits + scale > DIGITS:
        found = decimal_size(shortest(number)) or found
        digits, scale = max(found[0], node.digits), max(found[1], node.scale)
    if digits + scale <= DIGITS:
        node.digits, node.scale = digits, scale
        if node.kind is Kind.INTEGER and (scale or not LOWEST <= number <= HIGHEST):
            node.kind = Kind.DECIMAL
