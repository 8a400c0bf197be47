"""The schema of a stream: what is at every path of its records, over all scans (meta.columns).

A schema only grows: BOOLEAN; BIGINT < DECIMAL(38,0) < DECIMAL(38,s); DATE; TIMESTAMPTZ; VARCHAR;
objects; lists. A value that does not fit its place goes to `_extra` as it is spelled.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from itertools import takewhile
from typing import Any, TypeAlias

from pipelines.config.values import Contract
from pipelines.load.records import shortest
from pipelines.load.target import Target

DIGITS = 38  # of the widest decimal
LOWEST, HIGHEST = -(2**63), 2**63 - 1
MOST_COLUMNS = 500
LONGEST_NAME = 50  # characters, without a number and an ending
PARTS = ("", "__offset", "__count")  # endings of the columns that one place may have

CREATE_COLUMNS = """
CREATE TABLE IF NOT EXISTS meta.columns (
    stream VARCHAR, table_name VARCHAR, column_name VARCHAR, part VARCHAR, type VARCHAR,
    path VARCHAR, steps VARCHAR, digits INTEGER, position INTEGER
)
"""
SELECT_COLUMNS = """
SELECT
    columns.steps, columns.table_name, columns.column_name,
    columns.part, columns.type, columns.digits
FROM meta.columns AS columns
WHERE columns.stream = $stream AND columns.part IN ('value', 'count')
ORDER BY columns.position
"""
DELETE_COLUMNS = "DELETE FROM meta.columns WHERE columns.stream = $stream"
Path: TypeAlias = tuple[str | None, ...]
"""Names of members from the record inwards; None stands for the items of a list."""
Types: TypeAlias = dict[tuple[str, str], str]
"""Types of columns of data, by table and name."""


class Kind(StrEnum):
    """What a place holds; that of a scalar begins the type of its column."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "BIGINT"
    DECIMAL = "DECIMAL"
    DATE = "DATE"
    TIME = "TIMESTAMP WITH TIME ZONE"
    TEXT = "VARCHAR"
    OBJECT = "object"
    LIST = "list"


STARTS = {bool: Kind.BOOLEAN, str: Kind.TEXT, dict: Kind.OBJECT, list: Kind.LIST}
TEXT_KINDS = (Kind.TIME, Kind.DATE, Kind.DECIMAL)  # what text may turn out to be


@dataclass
class Place:
    """One place in the records of a stream that holds a value in at least one of them.

    `table` has its column, or its rows if it is an object in a list. `scale` and `digits` count the
    digits of a decimal behind and before the point. `candidates` are the kinds that every text seen
    in this scan fits; only a place that is new in it has any. Without `grows`, its type stays.
    """

    path: Path
    table: str
    kind: Kind
    name: str = ""
    scale: int = 0
    digits: int = 0
    candidates: tuple[Kind, ...] = ()
    grows: bool = True

    @property
    def is_item(self) -> bool:
        """Whether this is what a list holds."""
        return self.path[-1:] == (None,)

    @property
    def is_table(self) -> bool:
        """Whether this has rows: the record, or an object in a list."""
        return self.kind is Kind.OBJECT and (self.is_item or not self.path)

    @property
    def key(self) -> str:
        """The column of the table with the key of the record."""
        return "_parent_key" if self.path else "_key"

    @property
    def indexes(self) -> list[str]:
        """The columns of the table with the positions in the lists around, from the inside out."""
        outer = (f"_parent_index_{depth}" for depth in range(2, self.path.count(None)))
        return ["_index", "_parent_index", *outer][: self.path.count(None)]

    def columns(self) -> Iterator[tuple[str, str, str]]:
        """Yield part (value, offset of a time, count of a list), name and type of each column."""
        if self.kind is Kind.LIST:
            yield "count", f"{self.name}__count", "BIGINT"
        elif self.kind is not Kind.OBJECT:
            size = f"({DIGITS},{self.scale})" if self.kind is Kind.DECIMAL else ""
            yield "value", self.name, f"{self.kind}{size}{'[]' if self.is_item else ''}"
        if self.kind is Kind.TIME:
            yield "offset", f"{self.name}__offset", "VARCHAR"

    def make_room(self, number: Decimal) -> str | None:
        """Return a number as its column gets it, wider if it may grow; None if it does not fit."""
        for each in (number, shortest(number)):
            digits, scale = each.adjusted() + 1 if each else 0, -int(each.as_tuple().exponent)
            is_long = scale > 0 or not LOWEST <= number <= HIGHEST
            becomes_decimal = self.kind is Kind.INTEGER and is_long
            if (self.grows or not becomes_decimal) and self.widen(digits, scale):
                self.kind = Kind.DECIMAL if becomes_decimal else self.kind
                return f"{each:f}"
        return None

    def widen(self, digits: int, scale: int) -> bool:
        """Make room for so many digits before and behind the point; return whether there is."""
        digits, scale = max(self.digits, digits), max(self.scale, scale)
        has_room = digits + scale <= DIGITS and (self.grows or scale == self.scale)
        if has_room:
            self.digits, self.scale = digits, scale
        return has_room


@dataclass
class Schema:
    """The schema of one stream in one scan; without `grows`, it stays as it is.

    `known` are the types of the columns before the scan. `overflows` says that a field has no
    column because there are too many.
    """

    stream: str
    grows: bool = True
    overflows: bool = False
    known: Types = field(default_factory=dict)
    places: dict[Path, Place] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places[()] = Place((), self.stream, Kind.OBJECT)

    def place(self, path: Path, values: Iterable[Any]) -> Place | None:
        """Return the place at a path, made for its first value; None: it has none, or no room."""
        place = self.places.get(path)
        if place is not None or not self.grows:
            return place
        is_item = path[-1] is None  # a list in a list has no column
        found = (each for each in values if has_value(each))
        first = next((each for each in found if type(each) is not list or not is_item), None)
        if first is None:
            return None
        if type(first) is dict or not is_item:
            columns = (each for each in self.places.values() if each.name and not each.is_item)
            self.overflows = self.overflows or len([*columns]) >= MOST_COLUMNS
            if self.overflows:
                return None
        place = self._named(path, STARTS.get(type(first), Kind.INTEGER))
        self.places[path] = place
        return place

    def _named(self, path: Path, kind: Kind) -> Place:
        """Return a new place with a name for its column, or for the table of its items."""
        outer, places = self.places[path[:-1]], self.places.values()
        place = Place(path, outer.table, kind)
        if place.is_table:
            name = f"{outer.table}__{_plain_name(outer.path)}"
            place.table = _free_name(name, {each.table for each in places})
        elif place.is_item:
            place.name = outer.name
        elif kind is not Kind.OBJECT:
            names = (each.name for each in places if each.table == outer.table)
            place.name = _free_name(_plain_name(path), {n + part for n in names for part in PARTS})
            place.candidates = TEXT_KINDS if kind is Kind.TEXT else ()
        return place

    def discards(self, path: Path) -> bool:
        """Whether a value at a path that has no column is not even kept in `_extra`."""
        return not self.grows and path not in self.places

    def decide(self) -> None:
        """Settle what new text is. Decimals need a point: digits alone may be an identifier."""
        for place in self.places.values():
            found = (each for each in place.candidates if each is not Kind.DECIMAL or place.scale)
            place.kind, place.candidates = next(found, place.kind), ()

    @property
    def types(self) -> Types:
        """The types of the columns of data."""
        places = self.places.values()
        return {(each.table, name): kind for each in places for _, name, kind in each.columns()}

    @property
    def new_types(self) -> Types:
        """The columns that are new or have another type than before the scan."""
        return {at: kind for at, kind in self.types.items() if self.known.get(at) != kind}


def read_schema(target: Target, contract: Contract) -> Schema:
    """Return the schema of a stream as meta.columns holds it."""
    columns = target.run(SELECT_COLUMNS)
    schema = Schema(target.scan.header.stream, grows=contract != "discard" or not columns)
    for steps, table, name, part, of_type, digits in columns:
        path = tuple(json.loads(steps))
        for end in range(1, len(path)):
            schema.places.setdefault(path[:end], Place(path[:end], table, Kind.OBJECT))
        kind, _, size = of_type.strip("[)]").partition("(")
        scale = int(size.partition(",")[2] or 0)
        place = Place(path, table, Kind(kind), name, scale, digits, grows=schema.grows)
        if part == "count":
            place.kind, place.name = Kind.LIST, name.removesuffix("__count")
        schema.places[path] = place
    schema.known = schema.types
    return schema


def write_schema(target: Target, schema: Schema) -> None:
    """Replace the rows of a stream in meta.columns."""
    target.run(DELETE_COLUMNS)
    rows: list[dict[str, Any]] = []
    for place in schema.places.values():
        shared = {"stream": schema.stream, "table_name": place.table, "digits": place.digits}
        shared |= {"path": json_path(place.path), "steps": json.dumps(place.path)}
        for part, name, of_type in place.columns():
            column = {"column_name": name, "part": part, "type": of_type, "position": len(rows)}
            rows.append({**shared, **column})
    target.insert("meta.columns", rows)


def has_value(value: Any) -> bool:
    """Return whether a value is something else than null, or than objects full of nulls."""
    return any(map(has_value, value.values())) if type(value) is dict else value is not None


def _free_name(plain: str, taken: set[str]) -> str:
    """Return a name that is not taken, nor with any ending."""
    name, number = plain[:LONGEST_NAME], 1
    while not taken.isdisjoint(name + part for part in PARTS):
        number += 1
        name = f"{plain[:LONGEST_NAME]}_{number}"
    return name


def _plain_name(path: Path) -> str:
    """Return the names since the last list as one: `unitPrice` becomes `unit_price`."""
    steps = [str(step) for step in takewhile(lambda step: step is not None, reversed(path))]
    words = (
        re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", each) for each in steps
    )
    plain = [re.sub(r"\W", "_", each).lower().strip("_") or "unnamed" for each in words]
    return "__".join(reversed(plain))


def json_path(path: Path) -> str:
    """Return a path for people: `$.lines[*].unitPrice`."""
    return "$" + "".join("[*]" if step is None else f".{step}" for step in path)
