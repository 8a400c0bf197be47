"""Where records are not as the interface description says: both ways, on the shape and on counts.

Fields that came and are not described, described ones that never came, types that differ. Compared
is what a fold has found out anyway, and a query a table counts what is there: no record is looked
at again, only the first texts of what does not fit its column.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any

import duckdb

from pipelines.api.fields import NULL, Schema
from pipelines.api.problem import cleaned
from pipelines.warehouse import misfits, schema
from pipelines.warehouse.database import exists, quoted
from pipelines.warehouse.schema import DECIMALS, Kind, Shape

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
TEXT = "__text"
NEVER, EMPTY, PARTLY = "never came", "never came, or only null", "is not always there"
LACKING = {NEVER, EMPTY, PARTLY}  # what is said of a field that should be in every record
SHOWN = 100  # texts beside a column that are looked at: what they are, and not only how many


@dataclass(frozen=True)
class Beside:
    """Values of a field that do not fit its column: how many, and what the first of them are.

    Beside a column of decimals nobody can tell `numbers` from the texts of such.
    """

    count: int
    numbers: Shape
    others: Shape

    def shape(self, column: Shape, described: Schema) -> Shape:
        """Return what they are; numbers that may be what is described are left out."""
        if column.kind in DECIMALS and described.types & {"string", "number", "integer"}:
            return self.others
        return self.others.widened(self.numbers)


@dataclass(frozen=True)
class Counts:
    """The rows of a reading, and in how many of them each field that has a column holds a value.

    `beside`: what is in no column but in the text beside it, of the items of arrays too.
    """

    rows: int
    values: Mapping[Path, int]
    beside: Mapping[Path, Beside]

    def there(self, path: Path) -> int | None:
        """Return in how many rows a field or anything inside it came; None where none can tell."""
        paths = {each for each in (*self.values, *self.beside) if each[: len(path)] == path}
        inside = [self.values.get(each, 0) + self._texts(each) for each in paths - {path}]
        own = self.values.get(path, 0) + self._texts(path)
        return own + max(inside, default=0) if paths else None

    def _texts(self, path: Path) -> int:
        return self.beside[path].count if path in self.beside else 0


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
    """Count the values of a stream's columns; `names` are those that its paths were given."""
    found: dict[str, Counts] = {
        table: _Table(database, table, connection, root).counts(names.get(table, {}))
        for table, root in _roots(stream, names).items()
        if (table == stream or any(TEXT in leaf for leaf in names.get(table, ())))
        and exists(database, "current", table)
    }
    own = found.get(stream, Counts(0, {}, {}))
    beside = {path: each for counts in found.values() for path, each in counts.beside.items()}
    return Counts(own.rows, own.values, beside)


def _roots(stream: str, names: Mapping[str, Mapping[str, str]]) -> dict[str, Path]:
    """Return the path of each table's rows: `lines[]` of a child table."""
    roots: dict[str, Path] = {stream: ()}
    for leaf, table in names.get("", {}).items():  # parents were named before their children
        parent, *path = json.loads(leaf)
        whole = (*roots[parent], *path)
        roots[table] = (*whole[:-1], f"{whole[-1]}[]")
    return roots


@dataclass(frozen=True)
class _Table:
    """One table of a stream, of which a connection's rows are counted; `root` is their path."""

    database: duckdb.DuckDBPyConnection
    name: str
    connection: str
    root: Path

    def counts(self, names: Mapping[str, str]) -> Counts:
        """Count in one query; of a child table only what does not fit its columns."""
        columns = self.database.execute(f"DESCRIBE {quoted('current', self.name)}").fetchall()
        there = {name for name, *_rest in columns}
        leaves = [(json.loads(leaf), name) for leaf, name in names.items() if name in there]
        asked = {(*path[:-1],): name for path, name in leaves if path[-1] in ENDINGS}
        asked = {} if self.root else asked
        texts = {(*path[:-1],): name for path, name in leaves if path[-1] == TEXT}
        counted = [f"count({quoted(name)})" for name in (*asked.values(), *texts.values())]
        [(rows, *values)] = self._rows(", ".join(["count(*)", *counted]))
        filled = zip(texts.items(), values[len(asked) :], strict=True)
        beside = {
            (*self.root, *path): self._beside(name, count)
            for (path, name), count in filled
            if count
        }
        return Counts(rows, dict(zip(asked, values, strict=False)), beside)

    def _beside(self, column: str, count: int) -> Beside:
        name, found = quoted(column), Beside(count, schema.NOTHING, schema.NOTHING)
        for (text,) in self._rows(name, f"AND {name} IS NOT NULL LIMIT {SHOWN}"):
            shape = schema.census(misfits.read_back(text))
            which = "numbers" if shape.kind is Kind.NUMBER else "others"
            found = replace(found, **{which: getattr(found, which).widened(shape)})
        return found

    def _rows(self, selected: str, others: str = "") -> list[tuple[Any, ...]]:
        table = quoted("current", self.name)
        query = f"SELECT {selected} FROM {table} WHERE _connection = ? {others}"
        return self.database.execute(query, [self.connection]).fetchall()


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
            never = NEVER if found is None else EMPTY
            yield Differing(field, never, described.words, "")
        elif there is not None and there < rows and found.kind is not Kind.OBJECT:
            lacking = f"missing or null in {rows - there:,} of {rows:,} rows"
            yield Differing(field, PARTLY, "always there", lacking)

    def _values(
        self, described: Schema, found: Shape, path: Path, *, always: bool
    ) -> Iterator[Differing]:
        """Compare the types of one field, then what is inside it."""
        field, other = _told(path[:-1], path[-1]), "is of another type"
        beside = self.counts.beside.get(path)
        if beside is not None and not _fits(described, texts := beside.shape(found, described)):
            words = f"{_words(texts)} ({beside.count:,} in the text beside it)"
            yield Differing(field, other, described.words, words)
        if self.counts.values.get(path) == 0:
            return  # nothing in its column: an earlier reading made it
        if not _fits(described, found):
            yield Differing(field, other, described.words, _words(found))
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
