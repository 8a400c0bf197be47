"""Reads from rows of `history` what was sent at a path: from columns, tables of items, `_extra`."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import duckdb
import pyarrow as pa

from pipelines.core.text import quote_identifier
from pipelines.load.names import MAP_NAME, MAP_VALUE, Path
from pipelines.load.records import Number
from pipelines.load.schema import Kind, Place

# A time as text with its offset; without an offset, it was a date.
TIME_TEXT: Final = """
CASE WHEN {offset} IS NULL THEN strftime({column} AT TIME ZONE 'UTC', '%Y-%m-%d')
ELSE regexp_replace(strftime(
    ({column} AT TIME ZONE 'UTC')
    + if({offset} = 'Z', INTERVAL 0 SECOND, CAST(replace({offset}, '+', '') AS INTERVAL)),
    '%Y-%m-%dT%H:%M:%S.%f'
), '[.]?0*$', '') || {offset} END
"""
ROW_KEY: Final = ("_connection", "_valid_from")
SELECT_ITEMS: Final = """
SELECT rows._number, {columns}
FROM {table} AS history
JOIN earlier_rows AS rows ON {condition}
ORDER BY {order}
"""
Fields: TypeAlias = dict[str, Any]
"""The columns of one row, by name."""


def text_of(place: Place) -> str:
    """Return the expression that reads a column of a place so that no value loses digits."""
    column = f"history.{quote_identifier(place.name)}"
    if place.kind is Kind.TIME:
        offset = f"history.{quote_identifier(f'{place.name}__offset')}"
        return TIME_TEXT.format(column=column, offset=offset)
    if place.kind in {Kind.DECIMAL, Kind.DATE}:
        return f"CAST({column} AS VARCHAR{'[]' if place.is_item else ''})"
    return column


@dataclass(frozen=True)
class Earlier:
    """What rows of one table hold at a path. `places` are that of the path and those below it."""

    db: duckdb.DuckDBPyConnection
    table: Place
    path: Path
    places: Mapping[Path, Place]

    def columns(self, table: str) -> dict[str, str]:
        """Return expressions of the columns that a table has of the places, by name."""
        found = dict[str, str]()
        for place in self.places.values():
            if place.table == table and place.is_scalar:
                found[place.name] = text_of(place)
            elif place.table == table and place.kind is Kind.LIST:
                name = f"{place.name}__count"
                found[name] = f"history.{quote_identifier(name)}"
        return found

    def read(self, rows: pa.Table) -> list[Any]:
        """Return what was sent in rows, each None if it was nothing.

        The rows have `_number`, the columns of the table's key, those of the places, and `_extra`.
        """
        self.db.register("earlier_rows", rows)
        items = {path: self._items(place) for path, place in self._tables()}
        self.db.unregister("earlier_rows")
        values = []
        for fields in rows.to_pylist():
            at = (fields["_number"],)
            value = self._value(self.path, fields, at, items)
            left = self.left(json.loads(fields["_extra"] or "null"))
            values.append(_merged(value, left) if isinstance(left, dict) else value)
        return values

    def left(self, extra: Any) -> Any:
        """Return what the content of `_extra` of a row has at the path."""
        for step in self.path[len(self.table.path) :]:
            extra = extra.get(step) if isinstance(extra, dict) else None
        return extra

    def _tables(self) -> Iterator[tuple[Path, Place]]:
        return ((path, place) for path, place in self.places.items() if place.is_table)

    def _items(self, item: Place) -> dict[tuple[int, ...], list[Fields]]:
        """Return the rows of a table of items, by number of the row and indexes of lists around."""
        outer = len(self.table.indexes)
        indexes = item.indexes[: len(item.indexes) - outer]
        columns = {name: f"history.{name}" for name in (*indexes, "_extra")}
        columns |= self.columns(item.table)
        own = (self.table.key, *self.table.indexes)
        theirs = (item.key, *item.indexes[len(indexes) :])
        pairs = [*zip(own, theirs, strict=True), *((name, name) for name in ROW_KEY)]
        query = SELECT_ITEMS.format(
            columns=", ".join(
                f"{each} AS {quote_identifier(name)}" for name, each in columns.items()
            ),
            table=f"history.{quote_identifier(item.table)}",
            condition=" AND ".join(f"rows.{mine} = history.{other}" for mine, other in pairs),
            order=", ".join(["rows._number", *(f"history.{each}" for each in reversed(indexes))]),
        )
        found = defaultdict[tuple[int, ...], list[Fields]](list)
        for fields in self.db.execute(query).to_arrow_table().to_pylist():
            around = (fields[name] for name in reversed(indexes[1:]))
            found[fields["_number"], *around].append(fields)
        return found

    def _value(
        self, path: Path, fields: Fields, at: tuple[int, ...], items: Mapping[Path, Any]
    ) -> Any:
        """Return the value of a place in a row; `at` are its number and indexes of lists around."""
        place = self.places.get(path)
        if place is None:
            return None
        if place.is_scalar:
            return _sent(place, fields[place.name])
        if place.kind is Kind.OBJECT:
            return self._object(path, fields, at, items)
        item = self.places.get((*path, None))
        rows = items[item.path].get(at, []) if item is not None and item.is_table else []
        objects = [self._item(item, each, at, items) for each in rows] if item else []
        if place.kind is Kind.MAP:
            named = zip(rows, objects, strict=True)
            return {row[MAP_NAME]: each.get(MAP_VALUE) for row, each in named} or None
        count = fields[f"{place.name}__count"]
        if item is not None and item.is_scalar:
            objects = [_sent(item, each) for each in fields[item.name] or ()]
        return None if count is None else objects + [None] * (count - len(objects))

    def _item(
        self, item: Place, fields: Fields, at: tuple[int, ...], items: Mapping[Path, Any]
    ) -> Any:
        """Return an item of a list of objects, with what is in its `_extra`."""
        value = self._object(item.path, fields, (*at, fields["_index"]), items)
        return _merged(value, json.loads(fields["_extra"] or "null")) or {}

    def _object(
        self, path: Path, fields: Fields, at: tuple[int, ...], items: Mapping[Path, Any]
    ) -> dict[str, Any] | None:
        """Return the object at a path, without members that have no value."""
        found = {}
        for each in self._members.get(path, ()):
            value = self._value(each, fields, at, items)
            if value is not None:
                found[str(each[-1])] = value
        return found or None

    @cached_property
    def _members(self) -> dict[Path, list[Path]]:
        found = defaultdict[Path, list[Path]](list)
        for path in self.places:
            found[path[:-1]].append(path)
        return found


def _sent(place: Place | None, value: Any) -> Any:
    """Return a value of a column as it is in a record."""
    is_number = place is not None and place.kind is Kind.DECIMAL and value is not None
    return Number(value) if is_number else value


def _merged(value: Any, extra: Any) -> Any:
    """Return a value with what `_extra` has of it, which is exact."""
    if isinstance(value, dict) and isinstance(extra, dict):
        return value | {name: _merged(value.get(name), each) for name, each in extra.items()}
    return value if extra is None else extra
