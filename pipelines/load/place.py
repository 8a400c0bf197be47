"""One place in the records of a stream: what is there, and the type of its column.

Here: what the values of a scan show about a place, and the type that follows from that. Not here:
how values are looked at (`observe.py`), and which places a stream has (`schema.py`).

The type of a new column is the first of BOOLEAN, BIGINT, DECIMAL, DATE and TIMESTAMPTZ that takes
every value; else VARCHAR, which takes everything as it is spelled. A known column only grows:
BIGINT to DECIMAL, DECIMAL to one of more digits, DATE to TIMESTAMPTZ. VARCHAR that was decided from
too little (digits only) is decided again. What a column does not take goes to `_extra`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from pipelines.config.types import DeclaredType
from pipelines.load.paths import MAP_NAME, FieldPath, steps_to_row

# Digits of the widest decimal of DuckDB, and what a BIGINT can hold.
DIGITS: Final = 38
LOWEST: Final = -(2**63)
HIGHEST: Final = 2**63 - 1
INTEGER_DIGITS: Final = 19


class Kind(StrEnum):
    """What a place holds; that of a scalar begins the type of its column."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "BIGINT"
    DECIMAL = "DECIMAL"
    DATE = "DATE"
    # As DuckDB names it in its catalog.
    TIME = "TIMESTAMP WITH TIME ZONE"
    TEXT = "VARCHAR"
    OBJECT = "object"
    LIST = "list"
    MAP = "map"


NUMBERS: Final = frozenset({Kind.INTEGER, Kind.DECIMAL})
CONTAINER_KINDS: Final[dict[type, Kind]] = {dict: Kind.OBJECT, list: Kind.LIST}
# What a scalar may turn out to be, besides text. An integer is a decimal that never had a point.
SCALARS: Final = (Kind.BOOLEAN, Kind.DECIMAL, Kind.DATE, Kind.TIME)
# The same of items of lists. Their texts stay texts: they are labels.
OF_ITEMS: Final = (Kind.BOOLEAN, Kind.DECIMAL)
DECLARED_KINDS: Final = {
    "text": Kind.TEXT,
    "json": Kind.TEXT,
    "integer": Kind.INTEGER,
    "decimal": Kind.DECIMAL,
    "boolean": Kind.BOOLEAN,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "epoch_seconds": Kind.TIME,
    "epoch_milliseconds": Kind.TIME,
}


@dataclass
class Seen:
    """What the values of one place are that this scan stages.

    `shown` are kinds that some value shows: a number, or a text with a point, shows a decimal; a
    text of digits alone may be an identifier. `one_by_one` are kinds for which each value must be
    looked at when it is stored; for others, a cast of Arrow stores all. `digits` and `scale` count
    those of numbers before and behind the point, those of texts with an exponent apart, as no
    integer column takes them. `has_long`: an integer is no BIGINT. `scales` are those of number
    texts: with only one, no two texts are the same number. `has_extreme_day`: a day that no time
    can hold.
    """

    shown: set[Kind] = field(default_factory=set)
    one_by_one: set[Kind] = field(default_factory=set)
    digits: int = 0
    scale: int = 0
    exponent_digits: int = 0
    exponent_scale: int = 0
    has_exponent: bool = False
    has_long: bool = False
    has_extreme_day: bool = False
    scales: set[int] = field(default_factory=set)

    def copy(self) -> "Seen":
        """Return a copy that shares nothing."""
        return replace(
            self,
            shown={*self.shown},
            one_by_one={*self.one_by_one},
            scales={*self.scales},
        )


@dataclass
class Place:
    """One place in the records of a stream that holds a value in at least one of them.

    `table` has its column, or its rows if it is an object in a list. `scale` and `digits` count the
    digits of a decimal behind and before the point. `candidates` are the kinds that take every
    value of a place whose kind is not settled. Without `grows`, its type stays. `declared` is the
    type that settings gave the column. `is_new` in this scan.
    """

    path: FieldPath
    table: str
    kind: Kind
    name: str = ""
    scale: int = 0
    digits: int = 0
    candidates: tuple[Kind, ...] = ()
    grows: bool = True
    declared: DeclaredType | None = None
    is_new: bool = False
    seen: Seen = field(default_factory=Seen)

    @property
    def is_item(self) -> bool:
        """Whether this is what a list holds."""
        return self.path[-1:] == (None,)

    @property
    def is_table(self) -> bool:
        """Whether this has rows: the record, an object in a list, or a name of a map."""
        return self.kind is Kind.OBJECT and (self.is_item or not self.path)

    @property
    def is_scalar(self) -> bool:
        """Whether this has one column of single values, or of lists of them."""
        return self.kind not in {Kind.OBJECT, Kind.LIST, Kind.MAP}

    @property
    def is_map_name(self) -> bool:
        """Whether this has the names of a map."""
        return self.name == MAP_NAME

    @property
    def path_in_row(self) -> FieldPath:
        """The path from the row of its table inwards, as `_extra` of that row has it."""
        steps = self.path[:-1] if self.is_item else self.path
        return steps[steps_to_row(steps) :]

    @property
    def key(self) -> str:
        """The column of the table with the key of the record."""
        return "_parent_key" if self.path else "_key"

    @property
    def indexes(self) -> list[str]:
        """The columns of the table with the positions in the lists around, from the inside out."""
        lists_around = self.path.count(None)
        further = [f"_parent_index_{depth}" for depth in range(2, lists_around)]
        return ["_index", "_parent_index", *further][:lists_around]

    @property
    def column_type(self) -> str:
        """The type of the column of values, as DuckDB spells it."""
        column_type = str(self.kind)
        if self.kind is Kind.DECIMAL:
            column_type = f"{column_type}({DIGITS},{self.scale})"
        if self.is_item:
            column_type = f"{column_type}[]"
        return column_type

    def columns(self) -> Iterator[tuple[str, str, str]]:
        """Yield part (value, offset of a time, count of a list), name and type of each column."""
        if self.kind is Kind.LIST:
            yield "count", f"{self.name}__count", "BIGINT"
        elif self.is_scalar:
            yield "value", self.name, self.column_type
        if self.kind is Kind.TIME:
            yield "offset", f"{self.name}__offset", "VARCHAR"

    def decide(self, forbids: Callable[["Place", Kind], bool]) -> None:
        """Settle the type of the column from all values that were seen.

        `forbids` tells whether all values together forbid a kind that takes each of them.
        """
        if not self.is_scalar or not self.grows:
            return
        is_first_decision = self.is_new and self.declared is None
        is_open_text = self.kind is Kind.TEXT and self.candidates
        if is_first_decision or is_open_text:
            self._choose(forbids)
        elif self.kind is Kind.DATE and self.declared is None:
            self._become_time(forbids)
        elif self.kind in NUMBERS:
            self._grow()

    def _choose(self, forbids: Callable[["Place", Kind], bool]) -> None:
        """Give a column whose kind is not settled the kind of all its values."""
        shown = [kind for kind in self.candidates if kind in self.seen.shown]
        self.kind = shown[0] if shown else Kind.TEXT
        if self.kind is Kind.DECIMAL:
            self._become_number(forbids)
        if self.kind is not Kind.TEXT:
            self.candidates = ()

    def _become_number(self, forbids: Callable[["Place", Kind], bool]) -> None:
        """Give a column whose values are all numbers the narrowest type, or that of texts."""
        if forbids(self, Kind.DECIMAL):
            # Two texts spell one number, as versions do: 1.1 and 1.10. This stays text for good.
            self.kind = Kind.TEXT
            self.candidates = ()
            return
        needs_decimal = self.seen.scale > 0 or self.seen.has_long
        if self.seen.has_exponent and not needs_decimal:
            # Only decimals take exponents. This may become one when a value needs it.
            self.kind = Kind.TEXT
            return
        self.kind = Kind.INTEGER
        self._grow()

    def _become_time(self, forbids: Callable[["Place", Kind], bool]) -> None:
        """Make a column of days one of times, if a time was seen and all days can be times."""
        if Kind.TIME in self.seen.shown and not forbids(self, Kind.TIME):
            self.kind = Kind.TIME

    def _grow(self) -> None:
        """Make room for the numbers that were seen, as far as those before the point stay."""
        if self.declared is not None and self.declared.type == "integer":
            return
        seen = self.seen
        if self.kind is Kind.INTEGER and (seen.scale or seen.has_long):
            self.kind = Kind.DECIMAL
        digits = seen.digits
        if self.kind is Kind.DECIMAL:
            digits = max(digits, seen.exponent_digits)
            scale = max(seen.scale, seen.exponent_scale)
            self.scale = max(self.scale, min(scale, DIGITS - self.digits))
        self.digits = max(self.digits, min(digits, DIGITS - self.scale))

    def copy(self) -> "Place":
        """Return a copy that shares nothing."""
        return replace(self, seen=self.seen.copy())
