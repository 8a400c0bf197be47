"""Turns records into Arrow tables, column by column: types, nested objects, lists and `_extra`."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.load.names import MAP_NAME, MAP_VALUE, Path
from pipelines.load.observe import observe
from pipelines.load.records import CONTAINERS, DEEPEST, count_members, count_names, count_values
from pipelines.load.schema import STARTS, Kind, Place, Schema, has_value
from pipelines.load.values import to_staged

Integers: TypeAlias = npt.NDArray[np.int64]
Booleans: TypeAlias = npt.NDArray[np.bool_]
# Sorted: the same fields in another order, or beside other records, are the same text.
extra_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


@dataclass
class Rows:
    """Rows of one table in a batch: records, or the items of all lists at a place.

    `records` are the numbers of their records in the batch. `indexes` are the place of each row in
    its list, and those of the lists around that. `columns` are as staged; `rests` has what fits
    none, by row.
    """

    place: Place
    records: Integers
    indexes: Sequence[Integers] = ()
    columns: dict[str, pa.Array] = field(default_factory=dict)
    lengths: dict[str, pa.Array] = field(default_factory=dict)
    rests: dict[Any, Any] = field(default_factory=dict)

    def keep(self, row: int, path: Path, value: Any) -> None:
        """Put a value in the rest of a row, at its place in it."""
        *outer, last = (row, *path[len(self.place.path) :])
        rest = self.rests
        for step in outer:
            rest = rest.setdefault(step, {})
        rest[last] = value

    def count(self) -> int:
        """Count the values in columns and rests."""
        arrays = [
            each.flatten() if pa.types.is_list(each.type) else each
            for each in self.columns.values()
        ]
        in_columns = sum(len(each) - each.null_count for each in arrays)
        return int(in_columns) + count_values(list(self.rests.values()))

    def to_arrow(self, index: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows, with what the index of the batch has of their records."""
        found = index.take(pa.array(self.records))
        columns = dict(zip(found.schema.names, found.columns, strict=True))
        if self.place.path:
            columns = {"_position": columns["_position"], "_parent_key": columns["_key"]}
            columns |= dict(zip(self.place.indexes, self.indexes, strict=True))
        if self.rests:
            texts = {row: extra_text(_spelled(rest)) for row, rest in self.rests.items()}
            columns["_extra"] = pa.array(map(texts.get, range(len(self.records))), pa.string())
        return pa.RecordBatch.from_pydict(columns | self.lengths | self.columns)


@dataclass
class Batch:
    """Some records of a scan, decoded together. The schema grows with what they hold.

    `left` counts by path the values that have no column, `members` those of all objects.
    """

    schema: Schema
    left: Counter[Path] = field(default_factory=Counter)
    tables: list[Rows] = field(default_factory=list)
    members: int = 0
    _values: int = 0

    def add(self, records: Sequence[dict[str, Any]]) -> None:
        """Add rows of records and of the lists in them. Raises ValueError, RecursionError."""
        self.tables.append(Rows(self.schema.places[()], np.arange(len(records))))
        self._add_members(self.tables[0], (), records)
        self._require_all(self.tables)

    def add_at(self, rows: Rows, path: Path, values: Sequence[Any]) -> None:
        """Add the values of one path below rows that exist. Raises ValueError, RecursionError."""
        self._add(rows, path, values)
        self._require_all([rows, *self.tables])

    def _require_all(self, tables: Sequence[Rows]) -> None:
        """Raise ValueError unless every value has a place."""
        placed = sum(each.count() for each in tables)
        if placed != self._values:
            raise ValueError(f"{self._values:,} values of records became {placed:,}")

    def has_all(self, raws: Sequence[bytes]) -> bool:
        """Return whether no member of records is lost because its name is in an object twice."""
        return self.members == count_names(raws)

    def _add_members(self, rows: Rows, path: Path, objects: Sequence[dict[str, Any]]) -> None:
        """Add what the objects at a path hold; there is one for each row."""
        self.members += sum(map(len, objects))
        for name in dict.fromkeys(chain(*objects)):
            self._add(rows, (*path, name), list(map(dict.get, objects, repeat(name))))

    def _add(self, rows: Rows, path: Path, values: Sequence[Any]) -> None:
        """Add the values at a path; what does not fit goes to the rest of its row."""
        place, types = self.schema.place(path, values), _count_types(values)
        self._values += len(values) - types[NoneType] - types[dict] - types[list]
        fits = np.zeros(len(values), np.bool_)
        if not CONTAINERS.isdisjoint(types) and self._is_too_deep(path):
            raise RecursionError
        if place is not None and place.kind is Kind.OBJECT:
            fits = np.array([type(each) is dict for each in values], np.bool_)
            self._add_members(rows, path, [each if type(each) is dict else {} for each in values])
            self._note_shapes(place, values, types)
        elif place is not None and place.kind in {Kind.LIST, Kind.MAP}:
            add = self._add_lists if place.kind is Kind.LIST else self._add_maps
            fits = add(rows, place, values)
            self._note_shapes(place, values, types)
        elif place is not None:
            rows.columns[place.name] = self._stage(place, values, types)
            return
        if np.count_nonzero(fits) + types[NoneType] < len(values):
            for row in np.flatnonzero(~fits).tolist():
                self._add_left(rows, row, path, values[row])

    def _is_too_deep(self, path: Path) -> bool:
        return len(path) >= DEEPEST and self.schema.depth(path) >= DEEPEST

    def _stage(self, place: Place, values: Sequence[Any], types: Counter[type]) -> pa.Array:
        """Return the values of a scalar place as staged; objects and lists become JSON text."""
        if not CONTAINERS.isdisjoint(types):
            inner = [each for each in values if type(each) in CONTAINERS]
            self.members += count_members(inner, DEEPEST - self.schema.depth(place.path))
            self._values += sum(map(has_value, inner))
        staged = to_staged(values, {*types} - {NoneType})
        observe(place, staged)
        return staged

    def _note_shapes(self, place: Place, values: Sequence[Any], types: Counter[type]) -> None:
        """Count what the values of a new list or object are; empty ones may be either."""
        if not place.is_new:
            return
        if {*types} <= {dict, NoneType}:
            self.schema.shapes[place.path, Kind.OBJECT] += types[dict]
            return
        for each in values:
            if each != [] and has_value(each):
                self.schema.shapes[place.path, STARTS.get(type(each), Kind.TEXT)] += 1

    def _add_lists(self, rows: Rows, place: Place, values: Sequence[Any]) -> Booleans:
        """Add the lists of a place; return which values are lists that fit."""
        fits = np.array([type(each) is list for each in values], np.bool_)
        lists = [each if type(each) is list else () for each in values]
        lengths, items = np.array([*map(len, lists)], np.int64), [*chain(*lists)]
        ends = np.cumsum([0, *lengths])
        item = self.schema.place((*place.path, None), items)
        if item is not None and item.kind is Kind.OBJECT:
            self._add_items(rows, item, items, lengths)
        elif item is not None:
            types = _count_types(items)
            self._values += len(items) - types[NoneType] - types[dict] - types[list]
            staged = self._stage(item, items, types)
            offsets, mask = pa.array(ends, pa.int32()), pa.array(~fits)
            rows.columns[item.name] = pa.ListArray.from_arrays(offsets, staged, mask=mask)
        else:  # without a column for its items, a list is left as a whole
            owners = np.repeat(np.arange(len(lists)), lengths)
            fits[owners[[each is not None for each in items]]] = False
        rows.lengths[f"{place.name}__count"] = pa.array(lengths, mask=~fits)
        return fits

    def _add_items(
        self, rows: Rows, item: Place, items: Sequence[dict[str, Any]], lengths: Integers
    ) -> None:
        """Add objects as rows of a table of their own; `lengths` are how many each row has."""
        firsts = np.repeat(np.cumsum([0, *lengths])[:-1], lengths)
        of_list = np.arange(len(items)) - firsts
        outer = (np.repeat(each, lengths) for each in rows.indexes)
        self.tables.append(Rows(item, np.repeat(rows.records, lengths), [of_list, *outer]))
        self._add(self.tables[-1], item.path, items)

    def _add_maps(self, rows: Rows, place: Place, values: Sequence[Any]) -> Booleans:
        """Add a row for each name in the objects of a place; return which values are objects.

        Names without a value have no row, as they have no trace in columns.
        """
        items = list[dict[str, Any]]()
        lengths = np.zeros(len(values), np.int64)
        for at, each in enumerate(values):
            named = each if type(each) is dict else {}
            empty = [value for value in named.values() if not has_value(value)]
            self.members += len(named) + count_members(
                empty, DEEPEST - self.schema.depth(place.path)
            )
            found = [
                {MAP_NAME: name, MAP_VALUE: value}
                for name, value in sorted(named.items())
                if has_value(value)
            ]
            lengths[at] = len(found)
            items += found
        item = self.schema.place((*place.path, None), items)
        if item is not None:
            self._add_items(rows, item, items, lengths)
            self.members -= 2 * len(items)  # which are ours
        return np.array([type(each) is dict for each in values], np.bool_)

    def _add_left(self, rows: Rows, row: int, path: Path, value: Any) -> None:
        """Put a value without a column in the rest of its row, unless it is discarded."""
        if type(value) in CONTAINERS:
            self.members += count_members([value], DEEPEST - self.schema.depth(path))
        if has_value(value):
            values, is_kept = count_values(value), not self.schema.discards(path)
            self.left[path] += max(values, 1)
            self._values += values * is_kept - (not isinstance(value, dict | list))  # is counted
            if is_kept:
                rows.keep(row, path, value)


def add_to_extras(extras: pa.Array, left: dict[int, dict[Path, Any]]) -> pa.Array:
    """Return the texts of `_extra` with more values, by row and by path from the row inwards."""
    texts = extras.to_pylist()
    for row, values in left.items():
        rest: dict[Any, Any] = json.loads(texts[row]) if texts[row] else {}
        for (*outer, last), value in values.items():
            inner = rest
            for step in outer:
                inner = inner.setdefault(step, {})
            inner[last] = value
        texts[row] = extra_text(rest)
    return pa.array(texts, pa.string())


def _count_types(values: Sequence[Any]) -> Counter[type]:
    """Count values by type; mostly there is only one."""
    types = {*map(type, values)}
    return Counter(map(type, values) if len(types) > 1 else dict.fromkeys(types, len(values)))


def _spelled(value: Any) -> Any:
    """Return a value with every number as text."""
    if isinstance(value, dict):
        return {name: _spelled(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_spelled(each) for each in value]
    return str(value) if type(value) is int else value
