"""Where records are not as the interface description says: both ways, on the shape and on counts.

Fields that came and are not described, described ones that never came, types that differ. Compared
is what a fold has found out anyway, and one query counts nulls: no record is looked at again.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass

import duckdb

from pipelines.api.fields import NULL, Schema
from pipelines.api.problem import cleaned
from pipelines.warehouse.database import quoted
from pipelines.warehouse.schema import Kind, Shape

Path = tuple[str, ...]
_TYPES = {
    Kind.BOOLEAN: {"boolean"},
    Kind.DECIMAL_TEXT: {"string"},
    Kind.TIME: {"string"},
    Kind.TEXT: {"string"},
    Kind.KEY: {"string"},
    Kind.MONEY: {"number", "string"},
    Kind.OBJECT: {"object"},
    Kind.ARRAY: {"array"},
}
ENDINGS = ("", "__count")  # of the columns that say whether something was there


@dataclass(frozen=True)
class Counts:
    """The rows of a reading, and in how many of them each field that has a column holds a value."""

    rows: int
    values: Mapping[Path, int]

    def there(self, path: Path) -> int | None:
        """Return in how many rows a field or anything inside it came; None where none can tell."""
        inside = [count for each, count in self.values.items() if each[: len(path)] == path]
        return max(inside, default=None)


@dataclass(frozen=True)
class Differing:
    """One difference: where, what it is, as described, as found."""

    field: str
    what: str
    described: str
    found: str


def count(
    database: duckdb.DuckDBPyConnection,
    names: Mapping[str, Mapping[str, str]],
    stream: str,
    connection: str,
) -> Counts:
    """Count the values of a stream's own columns; `names` are those that its paths were given."""
    table = quoted("current", stream)
    columns = {name for name, *_rest in database.execute(f"DESCRIBE {table}").fetchall()}
    leaves = [(json.loads(leaf), name) for leaf, name in names.get(stream, {}).items()]
    asked = {(*path[:-1],): name for path, name in leaves if path[-1] in ENDINGS if name in columns}
    counted = "".join(f", count({quoted(name)})" for name in asked.values())
    row = database.execute(
        f"SELECT count(*){counted} FROM {table} WHERE _connection = ?", [connection]
    ).fetchone()
    rows, *values = row or (0,)
    return Counts(rows, dict(zip(asked, values, strict=True)))


def between(described: Schema, shape: Shape, counts: Counts) -> tuple[Differing, ...]:
    """Return where a reading is not as described; nothing where it is empty."""
    if counts.rows == 0:
        return ()
    found = _Comparison(counts).objects(described, shape, (), always=True)
    return tuple(_printable(each) for each in found)


def _printable(each: Differing) -> Differing:
    """Return a difference without control characters: its words are somebody else's."""
    return Differing(*(cleaned(words) for words in astuple(each)))


@dataclass(frozen=True)
class _Comparison:
    """One reading against its description, walked field by field."""

    counts: Counts

    def objects(
        self, described: Schema, shape: Shape, path: Path, *, always: bool
    ) -> Iterator[Differing]:
        """Compare two objects; `always`: this object is in every row, so that nulls count."""
        if not described.fields:
            return
        for name, found in shape.fields.items():
            came = self.counts.there((*path, name)) != 0 and found.kind is not Kind.NULL
            if name not in described.fields and came and not described.open:
                yield Differing(_told(path, name), "is not described", "", _words(found))
        for name, each in described.fields.items():
            there = shape.fields.get(name)
            required = always and name in described.required
            yield from self._presence((*path, name), each, there, required=required)
            if there is not None:
                yield from self._values(each, there, (*path, name), always=required)

    def _presence(
        self, path: Path, described: Schema, found: Shape | None, *, required: bool
    ) -> Iterator[Differing]:
        there = self.counts.there(path)
        field, rows = _told(path[:-1], path[-1]), self.counts.rows
        if not required or (found is not None and described.nullable):
            return
        if found is None or there == 0:
            never = "never came" if found is None else "never came, or only null"
            yield Differing(field, never, described.words, "")
        elif there is not None and there < rows and found.kind is not Kind.OBJECT:
            lacking = f"missing or null in {rows - there:,} of {rows:,} rows"
            yield Differing(field, "is not always there", "always there", lacking)

    def _values(
        self, described: Schema, found: Shape, path: Path, *, always: bool
    ) -> Iterator[Differing]:
        """Compare the types of one field, then what is inside it."""
        if not _fits(described, found):
            field = _told(path[:-1], path[-1])
            yield Differing(field, "is of another type", described.words, _words(found))
        elif found.kind is Kind.OBJECT:
            inside = always and not described.nullable
            yield from self.objects(described, found, path, always=inside)
        elif found.kind is Kind.ARRAY and described.item is not None and found.item is not None:
            item = (*path[:-1], f"{path[-1]}[]")
            yield from self._values(described.item, found.item, item, always=False)


def _fits(described: Schema, found: Shape) -> bool:
    """Tell whether a description allows what was found."""
    types = described.types - {NULL}
    if not types or found.kind is Kind.NULL:
        return True
    if found.kind is Kind.NUMBER:
        return "number" in types or ("integer" in types and found.scale == 0)
    if found.kind is Kind.JSON:
        return len(types) > 1
    no_time = described.format == "date-time" and found.kind in {Kind.TEXT, Kind.DECIMAL_TEXT}
    return _TYPES[found.kind] <= types and not no_time


def _words(shape: Shape) -> str:
    match shape.kind:
        case Kind.NUMBER:
            return "integer" if shape.scale == 0 else "number"
        case Kind.TIME:
            return "string (date-time)"
        case Kind.JSON:
            return "values of several types, or with too many digits"
        case Kind.ARRAY:
            return "array" if shape.item is None else f"array of {_words(shape.item)}"
        case _:
            return " or ".join(sorted(_TYPES.get(shape.kind, {NULL})))


def _told(path: Path, name: str) -> str:
    return ".".join((*path, name))
