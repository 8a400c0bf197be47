"""Reads from rows of `history` what was sent at a path: from columns, tables of items, `_extra`.

Here: values of records as they were before an object becomes a map. Not here: what becomes of them
(`maps.py`).
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import duckdb
import pyarrow as pa

from pipelines.core.text import quote_identifier
from pipelines.load.extras import find
from pipelines.load.paths import MAP_NAME, MAP_VALUE, FieldPath
from pipelines.load.place import Kind, Place
from pipelines.load.records import Number

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
RowCells: TypeAlias = dict[str, Any]
"""The columns of one row, by name."""
Position: TypeAlias = tuple[int, ...]
"""The number of a row, then the indexes of the lists around an item of it, from the outside in."""
Items: TypeAlias = Mapping[FieldPath, Mapping[Position, list[RowCells]]]
"""Rows of tables of items, by path of the item and position of the list."""


def text_of(place: Place) -> str:
    """Return the expression that reads a column of a place so that no value loses digits."""
    column = f"history.{quote_identifier(place.name)}"
    if place.kind is Kind.TIME:
        offset = f"history.{quote_identifier(f'{place.name}__offset')}"
        return TIME_TEXT.format(column=column, offset=offset)
    if place.kind in {Kind.DECIMAL, Kind.DATE}:
        text_type = "VARCHAR[]" if place.is_item else "VARCHAR"
        return f"CAST({column} AS {text_type})"
    return column


@dataclass(frozen=True)
class EarlierValues:
    """What rows of one table hold at a path. `places` are that of the path and those below it."""

    db: duckdb.DuckDBPyConnection
    table: Place
    path: FieldPath
    places: Mapping[FieldPath, Place]

    def columns(self, table: str) -> dict[str, str]:
        """Return expressions of the columns that a table has of the places, by name."""
        columns = dict[str, str]()
        for place in self.places.values():
            if place.table != table:
                continue
            if place.is_scalar:
                columns[place.name] = text_of(place)
            elif place.kind is Kind.LIST:
                count = f"{place.name}__count"
                columns[count] = f"history.{quote_identifier(count)}"
        return columns

    def read(self, rows: pa.Table) -> list[Any]:
        """Return what was sent in rows, each None if it was nothing.

        The rows have `_number`, the columns of the table's key, those of the places, and `_extra`.
        """
        self.db.register("earlier_rows", rows)
        items = {}
        for path, place in self.places.items():
            if place.is_table:
                items[path] = self._read_items(place)
        self.db.unregister("earlier_rows")
        values = []
        for cells in rows.to_pylist():
            value = self._value(self.path, cells, (cells["_number"],), items)
            in_extra = self.in_extra(cells["_extra"])
            if isinstance(in_extra, dict):
                value = _merged(value, in_extra)
            values.append(value)
        return values

    def in_extra(self, text: str | None) -> Any:
        """Return what the text of `_extra` of a row has at the path."""
        if text is None:
            return None
        return find(json.loads(text), self.path[len(self.table.path) :])

    def _read_items(self, item: Place) -> dict[Position, list[RowCells]]:
        """Return the rows of a table of items that belong to the rows."""
        # Lists around the row have an index in both tables. Those below it have one only here.
        below_row = len(item.indexes) - len(self.table.indexes)
        indexes = item.indexes[:below_row]
        columns = {name: f"history.{name}" for name in (*indexes, "_extra")}
        columns |= self.columns(item.table)
        of_row = [self.table.key, *self.table.indexes, *ROW_KEY]
        of_item = [item.key, *item.indexes[below_row:], *ROW_KEY]
        conditions = []
        for row_column, item_column in zip(of_row, of_item, strict=True):
            conditions.append(f"rows.{row_column} = history.{item_column}")
        selected = []
        for name, expression in columns.items():
            selected.append(f"{expression} AS {quote_identifier(name)}")
        order = ["rows._number", *(f"history.{index}" for index in reversed(indexes))]
        query = SELECT_ITEMS.format(
            columns=", ".join(selected),
            table=f"history.{quote_identifier(item.table)}",
            condition=" AND ".join(conditions),
            order=", ".join(order),
        )
        items = defaultdict[Position, list[RowCells]](list)
        outer_indexes = [*reversed(indexes[1:])]
        for cells in self.db.execute(query).to_arrow_table().to_pylist():
            position = (cells["_number"], *(cells[index] for index in outer_indexes))
            items[position].append(cells)
        return items

    def _value(self, path: FieldPath, cells: RowCells, position: Position, items: Items) -> Any:
        """Return the value of a place in a row of its table, which is at a position."""
        place = self.places.get(path)
        if place is None:
            return None
        if place.is_scalar:
            return _as_sent(place, cells[place.name])
        if place.kind is Kind.OBJECT:
            return self._object(path, cells, position, items)
        if place.kind is Kind.MAP:
            return self._map(place, position, items)
        return self._list(place, cells, position, items)

    def _map(self, place: Place, position: Position, items: Items) -> dict[str, Any] | None:
        """Return the object that is stored as a row for each name; None if it has no name."""
        members = {}
        item = self.places.get((*place.path, None))
        if item is not None:
            for cells in items[item.path].get(position, []):
                content = self._item(item, cells, position, items)
                members[cells[MAP_NAME]] = content.get(MAP_VALUE)
        return members or None

    def _list(
        self, place: Place, cells: RowCells, position: Position, items: Items
    ) -> list[Any] | None:
        """Return a list; what its table or column does not have of it was null."""
        count = cells[f"{place.name}__count"]
        if count is None:
            return None
        item = self.places.get((*place.path, None))
        values = list[Any]()
        if item is not None and item.is_table:
            rows = items[item.path].get(position, [])
            values = [self._item(item, row, position, items) for row in rows]
        elif item is not None and item.is_scalar:
            values = [_as_sent(item, value) for value in cells[item.name] or ()]
        return values + [None] * (count - len(values))

    def _item(self, item: Place, cells: RowCells, position: Position, items: Items) -> Any:
        """Return an item of a list of objects, with what is in its `_extra`."""
        value = self._object(item.path, cells, (*position, cells["_index"]), items)
        in_extra = json.loads(cells["_extra"] or "null")
        return _merged(value, in_extra) or {}

    def _object(
        self, path: FieldPath, cells: RowCells, position: Position, items: Items
    ) -> dict[str, Any] | None:
        """Return the object at a path, without members that have no value."""
        members = {}
        for member_path in self._members.get(path, ()):
            value = self._value(member_path, cells, position, items)
            if value is not None:
                members[str(member_path[-1])] = value
        return members or None

    @cached_property
    def _members(self) -> dict[FieldPath, list[FieldPath]]:
        """The paths of the members of each object."""
        members = defaultdict[FieldPath, list[FieldPath]](list)
        for path in self.places:
            members[path[:-1]].append(path)
        return members


def _as_sent(place: Place, value: Any) -> Any:
    """Return a value of a column as it is in a record."""
    if place.kind is Kind.DECIMAL and value is not None:
        return Number(value)
    return value


def _merged(value: Any, extra: Any) -> Any:
    """Return a value with what `_extra` has of it, which is exact."""
    if extra is None:
        return value
    if not isinstance(value, dict) or not isinstance(extra, dict):
        return extra
    merged = dict(value)
    for name, member in extra.items():
        merged[name] = _merged(value.get(name), member)
    return merged
