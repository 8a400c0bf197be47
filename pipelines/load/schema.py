"""The schema of a stream: what is at every path of its records, over all scans (meta.columns).

Here: which column a path has, and which type, decided at the end of a scan from all its values.
Not here: how values become columns (`values.py`), and how earlier rows follow (`reread.py`).

The type of a new column is the first of BOOLEAN, BIGINT, DECIMAL, DATE and TIMESTAMPTZ that takes
every value; else VARCHAR, which takes everything as it is spelled. A known column only grows:
BIGINT to DECIMAL, DECIMAL to one of more digits, DATE to TIMESTAMPTZ. VARCHAR that was decided from
too little (digits only) is decided again. What a column does not take goes to `_extra`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import takewhile
from types import MappingProxyType
from typing import Any, TypeAlias

import duckdb

from pipelines.config.settings import Stream
from pipelines.config.types import DeclaredType
from pipelines.load.names import MAP_NAME, MOST_COLUMNS, Names, Path
from pipelines.load.target import Target

DIGITS = 38  # of the widest decimal
LOWEST, HIGHEST = -(2**63), 2**63 - 1
INTEGER_DIGITS = 19  # of the widest BIGINT
LONGEST_NAME = 50  # characters, without a number and an ending
PARTS = ("", "__offset", "__count")  # endings of the columns that one place may have

CREATE_COLUMNS = """
CREATE TABLE IF NOT EXISTS meta.columns (
    stream VARCHAR, table_name VARCHAR, column_name VARCHAR, part VARCHAR, type VARCHAR,
    path VARCHAR, steps VARCHAR, digits INTEGER, position INTEGER, candidates VARCHAR,
    declared VARCHAR
)
"""
SELECT_COLUMNS = """
SELECT
    columns.steps, columns.table_name, columns.column_name,
    columns.part, columns.type, columns.digits, columns.candidates, columns.declared
FROM meta.columns AS columns
WHERE columns.stream = $stream AND columns.part IN ('value', 'count')
ORDER BY columns.position
"""
INSERT_COLUMN = f"INSERT INTO meta.columns VALUES ({', '.join('?' * 11)})"
DELETE_COLUMNS = "DELETE FROM meta.columns WHERE columns.stream = $stream"
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
    MAP = "map"


STARTS: dict[type, Kind] = {dict: Kind.OBJECT, list: Kind.LIST}
# What a scalar may turn out to be, besides text. An integer is a decimal that never had a point.
SCALARS = (Kind.BOOLEAN, Kind.DECIMAL, Kind.DATE, Kind.TIME)
OF_ITEMS = (Kind.BOOLEAN, Kind.DECIMAL)  # of lists: their texts stay texts
DECLARED_KINDS = {
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
    text of digits alone may be an identifier. `odd` are kinds for which each value must be looked
    at when it is stored; for others, a cast of Arrow stores all. `digits` and `scale` count those
    of numbers before and behind the point, those of texts with an exponent apart, as no integer
    column takes them. `has_long`: an integer is no BIGINT. `scales` are those of number texts: with
    only one, no two texts are the same number. `has_extreme_day`: a day that no time can hold.
    """

    shown: set[Kind] = field(default_factory=set)
    odd: set[Kind] = field(default_factory=set)
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
        return replace(self, shown={*self.shown}, odd={*self.odd}, scales={*self.scales})


@dataclass
class Place:
    """One place in the records of a stream that holds a value in at least one of them.

    `table` has its column, or its rows if it is an object in a list. `scale` and `digits` count the
    digits of a decimal behind and before the point. `candidates` are the kinds that take every
    value of a place whose kind is not settled. Without `grows`, its type stays. `declared` is the
    type that settings gave the column. `is_new` in this scan.
    """

    path: Path
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
    def of_row(self) -> Path:
        """The path from the row of its table inwards, as `_extra` of that row has it."""
        steps = self.path[:-1] if self.is_item else self.path
        start = len(steps) - [*reversed(steps), None].index(None)
        return steps[start:]

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
        elif self.is_scalar:
            size = f"({DIGITS},{self.scale})" if self.kind is Kind.DECIMAL else ""
            yield "value", self.name, f"{self.kind}{size}{'[]' if self.is_item else ''}"
        if self.kind is Kind.TIME:
            yield "offset", f"{self.name}__offset", "VARCHAR"

    def decide(self, speaks_against: Callable[["Place", Kind], bool]) -> None:
        """Settle the type of the column from all values that were seen.

        `speaks_against` tells whether stored or staged values forbid a kind that fits each of them.
        """
        if not self.is_scalar or not self.grows:
            return
        if (self.is_new and self.declared is None) or (self.kind is Kind.TEXT and self.candidates):
            self._choose(speaks_against)
        elif self.kind is Kind.DATE and self.declared is None:
            if Kind.TIME in self.seen.shown and not speaks_against(self, Kind.TIME):
                self.kind = Kind.TIME
        elif self.kind in {Kind.INTEGER, Kind.DECIMAL}:
            self._grow()

    def _choose(self, speaks_against: Callable[["Place", Kind], bool]) -> None:
        """Make a column whose kind is not settled what all its values are."""
        seen = self.seen
        chosen = next((kind for kind in self.candidates if kind in seen.shown), Kind.TEXT)
        if chosen is Kind.DECIMAL and speaks_against(self, chosen):
            self.candidates = ()
            chosen = Kind.TEXT
        is_whole = not (seen.scale or seen.has_long)
        if chosen is Kind.DECIMAL and is_whole and seen.has_exponent:
            chosen = Kind.TEXT  # an exponent is read in decimals only
        if chosen is Kind.TEXT:
            self.kind = Kind.TEXT
            return
        self.candidates = ()
        self.kind = chosen
        if chosen is Kind.DECIMAL:
            self.kind = Kind.INTEGER
            self._grow()

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


@dataclass
class Schema:
    """The schema of one stream in one scan; without `grows`, it stays as it is.

    `known` are the types of the columns before the scan. `declared` are types of settings, by path.
    `kinds` are those of paths that an earlier reading of the scan took for something else. `shapes`
    counts what new lists and objects are in other records: lists, objects, or (text) neither.
    `maps` are those of objects whose names are data. `new_maps` are those that this scan made one.
    `overflows` says that a field has no column because there are too many.
    """

    stream: str
    grows: bool = True
    decides_again: bool = True
    overflows: bool = False
    known: Types = field(default_factory=dict)
    places: dict[Path, Place] = field(default_factory=dict)
    declared: Mapping[str, DeclaredType] = field(default_factory=dict)
    kinds: dict[Path, Kind] = field(default_factory=dict)
    shapes: Counter[tuple[Path, Kind]] = field(default_factory=Counter)
    maps: frozenset[Path] = frozenset()
    new_maps: tuple[Path, ...] = ()
    names: Names = field(default_factory=Names)

    def __post_init__(self) -> None:
        self.places[()] = Place((), self.stream, Kind.OBJECT)

    def place(self, path: Path, values: Iterable[Any]) -> Place | None:
        """Return the place at a path, made for its first value; None: it has none, or no room."""
        place = self.places.get(path)
        if place is not None or not self.grows:
            return place
        kind = self._first_kind(path, values)
        if kind is None:
            return None
        if (kind is Kind.OBJECT or path[-1] is not None) and not self._has_room(path):
            self.overflows = True
            self.names.refuse(path, values)
            return None
        place = self._named(path, kind)
        self.places[path] = place
        return place

    def _has_room(self, path: Path) -> bool:
        """Return whether a new path may have a column; what a map itself needs always may."""
        if path in self.maps or self.is_of_map(path):
            return True
        if self.overflows:
            return False
        columns = sum(1 for each in self.places.values() if each.name and not each.is_item)
        return columns < MOST_COLUMNS

    def is_of_map(self, path: Path) -> bool:
        """Return whether a path is that of the rows of a map, of their names or their values."""
        at = path if path[-1] is None else path[:-1]
        holder = self.places.get(at[:-1])
        return at[-1:] == (None,) and holder is not None and holder.kind is Kind.MAP

    def depth(self, path: Path) -> int:
        """Return in how many objects and lists a path is; a name of a map is one step."""
        steps = (path[: end + 1] for end, step in enumerate(path) if step is None)
        return len(path) - sum(map(self.is_of_map, steps))

    def misread(self) -> dict[Path, Kind]:
        """Return the right kind of each new list or object that was read as another kind, by path.

        A field is what most of its values are, a list or an object, and `_extra` has the others.
        Where as many are lists as are objects, or some are neither, all are texts. So they are
        where some items of a list are lists, or some values of a map.
        """
        found = dict[Path, Kind]()
        for path in dict.fromkeys(path for path, _ in self.shapes):
            kind = self.places[path].kind
            lists, objects = self.shapes[path, Kind.LIST], self.shapes[path, Kind.OBJECT]
            is_text = lists == objects or kind is Kind.MAP or path[-1] is None
            if self.shapes[path, Kind.TEXT] or (lists and is_text):
                found[path] = Kind.TEXT
            elif lists > objects and kind is Kind.OBJECT:
                found[path] = Kind.LIST
            elif objects > lists and kind is Kind.LIST:
                found[path] = Kind.OBJECT
        return found

    def crowded(self) -> Path | None:
        """Return the object below the record whose names are data; of several, see `Names`.

        Its names grow: some were known before and others come. Or its stream has no column left.
        """
        if not self.grows or (self.known and not self.decides_again):
            return None
        inner = [each for each in self.places.values() if self._is_named(each.path)]
        return self.names.crowded({each.path: each.is_new for each in inner})

    def _is_named(self, path: Path) -> bool:
        """Return whether a path is that of a member of an object below a record or an item."""
        return len(path) > 1 and None not in path[-2:] and not self.is_of_map(path)

    def _first_kind(self, path: Path, values: Iterable[Any]) -> Kind | None:
        """Return the kind of a new place; any scalar is text until the scan ends."""
        found = [each for each in values if has_value(each)]
        if not found:
            return None
        if field_of(path) in self.declared:
            return Kind.TEXT
        if path in self.kinds:
            return self.kinds[path]
        if path in self.maps:
            return Kind.MAP
        # An empty list is sent for an empty object, too: what has members says more.
        first = next((each for each in found if each != []), found[0])
        if type(first) is list and path[-1] is None:
            return Kind.TEXT  # a list in a list has no columns
        return STARTS.get(type(first), Kind.TEXT)

    def _named(self, path: Path, kind: Kind) -> Place:
        """Return a new place with a name for its column, or for the table of its items."""
        outer, places = self.places[path[:-1]], self.places.values()
        place = Place(path, outer.table, kind, is_new=True)
        if place.is_table:
            name = f"{outer.table}__{self._plain_name(outer.path)}"
            place.table = _free_name(name, {each.table for each in places})
        elif place.is_item:
            place.name = outer.name
        elif self.is_of_map(path) and path[-1] == MAP_NAME:
            place.name = MAP_NAME
            return place
        elif kind not in {Kind.OBJECT, Kind.MAP}:
            names = (each.name for each in places if each.table == outer.table)
            taken = {n + part for n in names for part in PARTS}
            place.name = _free_name(self._plain_name(path), taken)
        if place.is_scalar:
            place.declared = self.declared.get(field_of(path))
        if place.declared is not None:
            place.kind = DECLARED_KINDS[place.declared.type]
        elif place.is_scalar and path not in self.kinds:
            place.candidates = OF_ITEMS if place.is_item else SCALARS
        return place

    def _plain_name(self, path: Path) -> str:
        """Return the name of a column or table; a member of the values of a map has its own."""
        start = len(path) - [*reversed(path), None].index(None)
        is_of_values = len(path) > start + 1 and self.is_of_map(path[: start + 1])
        return _plain_name(path[start + is_of_values :])

    def discards(self, path: Path) -> bool:
        """Whether a value at a path that has no column is not even kept in `_extra`."""
        return not self.grows and path not in self.places

    def decide(self, speaks_against: Callable[[Place, Kind], bool]) -> None:
        """Settle the types of all columns, at the end of a scan."""
        for place in self.places.values():
            if place.is_new or self.decides_again or place.kind is not Kind.TEXT:
                place.decide(speaks_against)

    def column(self, at: tuple[str, str]) -> Place:
        """Return the place that a column of data holds, by table and name."""
        places = self.places.values()
        return next(each for each in places if each.is_scalar and (each.table, each.name) == at)

    @property
    def types(self) -> Types:
        """The types of the columns of data."""
        places = self.places.values()
        return {(each.table, name): kind for each in places for _, name, kind in each.columns()}

    @property
    def new_types(self) -> Types:
        """The columns that are new or have another type than before the scan."""
        return {at: kind for at, kind in self.types.items() if self.known.get(at) != kind}


def read_schema(
    target: Target,
    stream: Stream,
    kinds: Mapping[Path, Kind] = MappingProxyType({}),
    maps: Collection[Path] = (),
) -> Schema:
    """Return the schema of a stream as meta.columns holds it."""
    places = read_places(target.db, target.scan.header.stream)
    schema = Schema(
        target.scan.header.stream,
        grows=stream.contract != "discard" or not places,
        decides_again=stream.contract == "evolve",
        declared=stream.types,
        kinds={**kinds},
        maps=frozenset(maps),
    )
    schema.places |= places
    for place in places.values():
        place.grows = schema.grows
    schema.known = schema.types
    return schema


def read_places(db: duckdb.DuckDBPyConnection, stream: str) -> dict[Path, Place]:
    """Return the places of a stream that have columns, and the objects around them."""
    places = dict[Path, Place]()
    for found in db.execute(SELECT_COLUMNS, {"stream": stream}).fetchall():
        steps, table, name, part, of_type, digits, candidates, declared = found
        path = tuple(json.loads(steps))
        for end in range(1, len(path)):
            outer = places[path[: end - 1]].table if end > 1 else stream
            of = table if path[end - 1] is None else outer
            places.setdefault(path[:end], Place(path[:end], of, Kind.OBJECT))
        kind, _, size = of_type.strip("[)]").partition("(")
        scale = int(size.partition(",")[2] or 0)
        place = Place(path, table, Kind(kind), name, scale, digits)
        place.candidates = tuple(Kind(each) for each in (candidates or "").split(",") if each)
        if declared is not None:
            place.declared = DeclaredType.model_validate_json(declared)
        if part == "count":
            place.kind = Kind.LIST
            place.name = name.removesuffix("__count")
        if place.is_map_name:
            places[path[:-2]].kind = Kind.MAP
        places[path] = place
    return places


def write_schema(db: duckdb.DuckDBPyConnection, schema: Schema) -> None:
    """Replace the rows of a stream in meta.columns."""
    db.execute(DELETE_COLUMNS, {"stream": schema.stream})
    position = 0
    for place in schema.places.values():
        declared = place.declared and place.declared.model_dump_json()
        for part, name, of_type in place.columns():
            about = (schema.stream, place.table, name, part, of_type)
            at = (json_path(place.path), json.dumps(place.path), place.digits, position)
            db.execute(INSERT_COLUMN, (*about, *at, ",".join(place.candidates), declared))
            position += 1


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


def field_of(path: Path) -> str:
    """Return a path as settings and mappings name a field: `lines[].unitPrice`."""
    return json_path(path).removeprefix("$").replace("[*]", "[]").removeprefix(".")
