"""A witness of landing that knows no shapes: a record as it was sent, walked through the tables.

It reads the record with Python's own JSON reader, finds columns by the names that the registry gave
to paths, and takes every cell that it has seen off its list: what is left over was invented.
"""

import json
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

import duckdb

OURS = {"_connection", "_key", "_page", "_row", "_run", "_digest"}
OURS |= {"first_seen", "changed_at", "missing_since"}
Path = tuple[str, ...]
Row = dict[str, Any]


class WrongError(ValueError):
    """A record that no table can hold."""


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _value in pairs}) < len(pairs):
        raise WrongError("twice")
    return dict(pairs)


def _number(lexeme: str) -> Decimal:
    if float(lexeme) in {float("inf"), float("-inf")}:
        raise WrongError(lexeme)
    return Decimal(lexeme)


def _refused(name: str) -> Any:
    raise WrongError(name)


def sent(text: str) -> Any:
    """Return a record as it was written; raise WrongError where it cannot be landed."""
    value = json.loads(
        text,
        parse_float=_number,
        parse_int=_number,
        parse_constant=_refused,
        object_pairs_hook=_members,
    )
    try:
        json.dumps(value, default=str, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise WrongError("half of a pair") from None
    return value


@dataclass
class Walk:
    """The tables of one stream, and the names that its paths were given."""

    database: duckdb.DuckDBPyConnection
    stream: str
    names: dict[str, dict[str, str]]
    key: str = "id"
    connection: str = "default"
    compared: int = 0
    _rows: dict[str, list[Row]] = field(default_factory=dict)

    def record(self, value: Row) -> None:
        """Assert that a record is in the tables, exactly, and nothing else under its key."""
        identity = {self.key: int(value[self.key])}
        [row] = self._found(self.stream, identity)
        self._row(self.stream, (), value, row, identity | {self.key: None})

    def _found(self, table: str, identity: Row) -> list[Row]:
        if table not in self._rows:
            query = f'SELECT * FROM current."{table}" WHERE _connection = ?'
            found = self.database.sql(query, params=[self.connection])
            self._rows[table] = found.to_arrow_table().to_pylist()
        return [
            row
            for row in self._rows[table]
            if all(row[name] == each for name, each in identity.items())
        ]

    def _row(self, table: str, path: Path, value: Any, row: Row, own: Row) -> None:
        left = {name for name, cell in row.items() if cell is not None} - OURS - own.keys()
        keys = [name for name in own if own[name] is None]
        left |= {name for name in keys if row[name] is not None}
        place = _Place(self, table, row, left, [name for name in own if name != self.key])
        if value is not None:
            place.value(path, value)
        assert not left, (table, left)


@dataclass
class _Place:
    """One row of a table, and its filled columns that nothing has accounted for yet."""

    walk: Walk
    table: str
    row: Row
    left: set[str]
    depths: list[str]

    def rest(self) -> Row:
        text = self._cell("_rest")
        return {} if text is None else sent(text)

    def _cell(self, name: str | None) -> Any:
        if name is None or self.row.get(name) is None:
            return None
        self.left.discard(name)
        return self.row[name]

    def _column(self, path: Path, ending: str) -> Any:
        given = self.walk.names.get(self.table, {})
        return self._cell(given.get(json.dumps([*path, ending])))

    def members(self, path: Path, value: Row, rest: Row) -> None:
        """Account for each member of an object: in its place, or in the rest."""
        for name, each in value.items():
            if name in rest and not (isinstance(each, dict) and rest[name] != each):
                assert same(rest[name], each)
            elif isinstance(each, dict) and not self._beside((*path, name), each):
                self.members((*path, name), each, rest.get(name, {}))
            elif not isinstance(each, dict) and each is not None:
                self.value((*path, name), each)

    def _beside(self, path: Path, value: Any) -> bool:
        """Tell whether a value stands whole beside its column, or in it as JSON."""
        text = self._column(path, "__text")
        if text is not None:
            assert same(read_back(text, value), value), (path, text, value)
            self.walk.compared += 1
            return True
        if isinstance(value, dict) and (text := self._column(path, "")) is not None:
            assert same(sent(text), value)
            self.walk.compared += 1
            return True
        return False

    def value(self, path: Path, value: Any) -> None:
        """Account for a value that is no object of its own columns."""
        if self._beside(path, value):
            return
        self.walk.compared += 1
        if isinstance(value, list) and (count := self._column(path, "__count")) is not None:
            assert count == len(value)
            self._items(path, value)
            return
        if isinstance(value, dict):  # all of a row
            self.members(path, value, self.rest())
            return
        cell = self._column(path, "")
        if isinstance(cell, datetime):
            assert value.endswith(self._column(path, "__offset"))
        assert holds(cell, value), (self.table, path, cell, value)

    def _items(self, path: Path, value: list[Any]) -> None:
        table = self.walk.names.get("", {}).get(json.dumps([self.table, *path]))
        if table is None:
            assert all(item is None for item in value)
            return
        depth = len(self.depths) + 1
        idx = "idx" if depth == 1 else f"idx_{depth}"
        own = {name: self.row[name] for name in (self.walk.key, *self.depths)}
        for place, item in enumerate(value):
            identity = own | {idx: place}
            [row] = self.walk._found(table, identity)
            self.walk._row(table, (), item, row, identity)
        assert len(self.walk._found(table, own)) == len(value)


def read_back(text: str, value: Any) -> Any:
    """Return what a text beside a column says; spelled numbers are as good as numbers there."""
    try:
        read = sent(text)
    except ValueError:
        return text
    return text if isinstance(read, Decimal) and isinstance(value, str) else read


def holds(cell: Any, value: Any) -> bool:
    """Tell whether a cell is a value: to the last digit, and no other kind of it."""
    if isinstance(cell, datetime):
        return cell == datetime.fromisoformat(value)
    if isinstance(cell, (int, Decimal)) and not isinstance(cell, bool):
        return not isinstance(value, bool) and cell == Decimal(value)
    if isinstance(cell, str) and not (isinstance(value, str) and cell == value):
        return same(sent(cell), value)
    return type(cell) is type(value) and cell == value


def same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are the same: true is no 1, order of members does not count."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)
