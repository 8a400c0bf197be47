"""Turns records into Arrow tables, column by column: types, nested objects, lists and `_extra`.

Here: where each value of a record goes. Not here: which places there are (`schema.py`), and what a
column makes of its values (`store.py`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.load.extras import extra_text, put, with_numbers_as_text
from pipelines.load.observe import observe
from pipelines.load.paths import MAP_NAME, MAP_VALUE, FieldPath
from pipelines.load.place import CONTAINER_KINDS, Kind, Place
from pipelines.load.records import (
    CONTAINERS,
    DEEPEST,
    count_members,
    count_names,
    count_values,
    has_value,
)
from pipelines.load.schema import Schema
from pipelines.load.values import single_values, to_staged

Integers: TypeAlias = npt.NDArray[np.int64]
Booleans: TypeAlias = npt.NDArray[np.bool_]


@dataclass
class TableRows:
    """Rows of one table in a batch: records, or the items of all lists at a place.

    `records` are the numbers of their records in the batch. `indexes` are the position of each row
    in its list, and those of the lists around that. `columns` are as staged, `lengths` those of
    lists; `extras` has what fits none, by row.
    """

    place: Place
    records: Integers
    indexes: Sequence[Integers] = ()
    columns: dict[str, pa.Array] = field(default_factory=dict)
    lengths: dict[str, pa.Array] = field(default_factory=dict)
    extras: dict[int, Any] = field(default_factory=dict)

    def keep_extra(self, row: int, path: FieldPath, value: Any) -> None:
        """Put a value in `_extra` of a row, at its place in it."""
        path_in_row = path[len(self.place.path) :]
        put((row, *path_in_row), value, into=self.extras)

    def count(self) -> int:
        """Count the values in columns and in `_extra`."""
        count = count_values(list(self.extras.values()))
        for array in self.columns.values():
            values = single_values(array)
            count += len(values) - values.null_count
        return count

    def to_arrow(self, index: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows, with what the index of the batch has of their records."""
        of_records = index.take(pa.array(self.records))
        columns = dict(zip(of_records.schema.names, of_records.columns, strict=True))
        if self.place.path:
            columns = {"_position": columns["_position"], "_parent_key": columns["_key"]}
            columns |= dict(zip(self.place.indexes, self.indexes, strict=True))
        if self.extras:
            texts: list[str | None] = [None] * len(self.records)
            for row, extra in self.extras.items():
                texts[row] = extra_text(with_numbers_as_text(extra))
            columns["_extra"] = pa.array(texts, pa.string())
        columns |= self.lengths
        columns |= self.columns
        return pa.RecordBatch.from_pydict(columns)


@dataclass
class Batch:
    """Some records of a scan, decoded together. The schema grows with what they hold.

    `without_column` counts values by path, `members` those of all objects. All values of one path
    become a column at once: loops over single values are in C (`map`, `chain`), or run only where
    values of several types stand at one path.
    """

    schema: Schema
    without_column: Counter[FieldPath] = field(default_factory=Counter)
    tables: list[TableRows] = field(default_factory=list)
    members: int = 0
    _values: int = 0

    def add(self, records: Sequence[dict[str, Any]]) -> None:
        """Add rows of records and of the lists in them. Raises ValueError, RecursionError."""
        rows = TableRows(self.schema.places[()], np.arange(len(records)))
        self.tables.append(rows)
        self._add_members(rows, (), records)
        self._require_all(self.tables)

    def add_at(self, rows: TableRows, path: FieldPath, values: Sequence[Any]) -> None:
        """Add the values of one path below rows that exist. Raises ValueError, RecursionError."""
        self._add(rows, path, values)
        self._require_all([rows, *self.tables])

    def _require_all(self, tables: Sequence[TableRows]) -> None:
        """Raise ValueError unless every value has a place."""
        placed = sum(rows.count() for rows in tables)
        if placed != self._values:
            raise ValueError(f"{self._values:,} values of records became {placed:,}")

    def has_all(self, raws: Sequence[bytes]) -> bool:
        """Return whether no member of records is lost because its name is in an object twice."""
        return self.members == count_names(raws)

    def _add_members(
        self, rows: TableRows, path: FieldPath, objects: Sequence[dict[str, Any]]
    ) -> None:
        """Add what the objects at a path hold; there is one for each row."""
        self.members += sum(map(len, objects))
        for name in dict.fromkeys(chain(*objects)):
            values = list(map(dict.get, objects, repeat(name)))
            self._add(rows, (*path, name), values)

    def _add(self, rows: TableRows, path: FieldPath, values: Sequence[Any]) -> None:
        """Add the values at a path; what does not fit goes to `_extra` of its row."""
        place = self.schema.place(path, values)
        types = _count_types(values)
        self._values += _count_scalars(types)
        if not CONTAINERS.isdisjoint(types) and self._is_too_deep(path):
            raise RecursionError
        if place is not None and place.is_scalar:
            rows.columns[place.name] = self._stage(place, values, types)
            return
        if place is None:
            fits = np.zeros(len(values), np.bool_)
        else:
            fits = self._add_containers(rows, place, values)
            self._note_shapes(place, values, types)
        if np.count_nonzero(fits) + types[NoneType] < len(values):
            for row in np.flatnonzero(~fits).tolist():
                self._add_extra(rows, row, path, values[row])

    def _add_containers(self, rows: TableRows, place: Place, values: Sequence[Any]) -> Booleans:
        """Add the objects or lists of a place; return which values are such, and fit."""
        if place.kind is Kind.OBJECT:
            return self._add_objects(rows, place.path, values)
        if place.kind is Kind.LIST:
            return self._add_lists(rows, place, values)
        return self._add_maps(rows, place, values)

    def _is_too_deep(self, path: FieldPath) -> bool:
        # The length of a path is at least its depth, and costs nothing.
        return len(path) >= DEEPEST and self.schema.depth(path) >= DEEPEST

    def _stage(self, place: Place, values: Sequence[Any], types: Counter[type]) -> pa.Array:
        """Return the values of a scalar place as staged; objects and lists become JSON text."""
        if not CONTAINERS.isdisjoint(types):
            containers = [value for value in values if type(value) in CONTAINERS]
            self.members += count_members(containers, self._levels_below(place.path))
            self._values += sum(map(has_value, containers))
        staged = to_staged(values, {*types} - {NoneType})
        observe(place, staged)
        return staged

    def _levels_below(self, path: FieldPath) -> int:
        """Return how many levels of objects and lists a value at a path may have."""
        return DEEPEST - self.schema.depth(path)

    def _note_shapes(self, place: Place, values: Sequence[Any], types: Counter[type]) -> None:
        """Count what the values of a new list or object are; empty ones may be either."""
        if not place.is_new:
            return
        shapes = self.schema.shapes
        if {*types} <= {dict, NoneType}:
            shapes[place.path, Kind.OBJECT] += types[dict]
            return
        for value in values:
            if value != [] and has_value(value):
                shape = CONTAINER_KINDS.get(type(value), Kind.TEXT)
                shapes[place.path, shape] += 1

    def _add_objects(self, rows: TableRows, path: FieldPath, values: Sequence[Any]) -> Booleans:
        """Add the members of the objects at a path; return which values are objects."""
        objects = [value if type(value) is dict else {} for value in values]
        self._add_members(rows, path, objects)
        return _are_of_type(dict, values)

    def _add_lists(self, rows: TableRows, place: Place, values: Sequence[Any]) -> Booleans:
        """Add the lists of a place; return which values are lists that fit."""
        fits = _are_of_type(list, values)
        lists = [value if type(value) is list else () for value in values]
        lengths = np.array([*map(len, lists)], np.int64)
        items = [*chain(*lists)]
        item = self.schema.place((*place.path, None), items)
        if item is None:
            # Without a column for its items, a list goes to `_extra` as a whole.
            owners = np.repeat(np.arange(len(lists)), lengths)
            fits[owners[[value is not None for value in items]]] = False
        elif item.kind is Kind.OBJECT:
            self._add_items(rows, item, items, lengths)
        else:
            types = _count_types(items)
            self._values += _count_scalars(types)
            staged = self._stage(item, items, types)
            offsets = pa.array(np.cumsum([0, *lengths]), pa.int32())
            rows.columns[item.name] = pa.ListArray.from_arrays(
                offsets, staged, mask=pa.array(~fits)
            )
        rows.lengths[f"{place.name}__count"] = pa.array(lengths, mask=~fits)
        return fits

    def _add_items(
        self, rows: TableRows, item: Place, items: Sequence[dict[str, Any]], lengths: Integers
    ) -> None:
        """Add objects as rows of a table of their own; `lengths` are how many each row has."""
        firsts = np.repeat(np.cumsum([0, *lengths])[:-1], lengths)
        indexes = [np.arange(len(items)) - firsts]
        indexes += [np.repeat(index, lengths) for index in rows.indexes]
        rows_of_items = TableRows(item, np.repeat(rows.records, lengths), indexes)
        self.tables.append(rows_of_items)
        self._add(rows_of_items, item.path, items)

    def _add_maps(self, rows: TableRows, place: Place, values: Sequence[Any]) -> Booleans:
        """Add a row for each name in the objects of a place; return which values are objects.

        Names without a value have no row, as they have no trace in columns.
        """
        levels = self._levels_below(place.path)
        items = list[dict[str, Any]]()
        lengths = np.zeros(len(values), np.int64)
        for row, value in enumerate(values):
            if type(value) is not dict:
                continue
            self.members += len(value)
            items_before = len(items)
            for name, member in sorted(value.items()):
                if has_value(member):
                    items.append({MAP_NAME: name, MAP_VALUE: member})
                elif member is not None:
                    # An object full of nulls: its names are in the record all the same.
                    self.members += count_members([member], levels)
            lengths[row] = len(items) - items_before
        item = self.schema.place((*place.path, None), items)
        if item is not None:
            self._add_items(rows, item, items, lengths)
            # The two members of each item are ours, not the record's.
            self.members -= 2 * len(items)
        return _are_of_type(dict, values)

    def _add_extra(self, rows: TableRows, row: int, path: FieldPath, value: Any) -> None:
        """Put a value without a column in `_extra` of its row, unless it is discarded."""
        is_container = type(value) in CONTAINERS
        if is_container:
            self.members += count_members([value], self._levels_below(path))
        if not has_value(value):
            return
        count = count_values(value)
        self.without_column[path] += max(count, 1)
        # `_add` has counted a scalar already.
        if not is_container:
            self._values -= 1
        if not self.schema.discards(path):
            self._values += count
            rows.keep_extra(row, path, value)


def _count_types(values: Sequence[Any]) -> Counter[type]:
    """Count values by type."""
    types = {*map(type, values)}
    if len(types) > 1:
        return Counter(map(type, values))
    # Mostly there is only one. A set is made in half of the time that counting takes.
    return Counter(dict.fromkeys(types, len(values)))


def _count_scalars(types: Counter[type]) -> int:
    """Return how many values are neither null nor a container, given their types."""
    return types.total() - types[NoneType] - types[dict] - types[list]


def _are_of_type(wanted: type, values: Sequence[Any]) -> Booleans:
    return np.array([type(value) is wanted for value in values], np.bool_)
