"""Turns records into Arrow tables, column by column: types, nested objects, lists and `_extra`."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.load.records import count_values
from pipelines.load.schema import Kind, Path, Place, Schema, has_value
from pipelines.load.target import defect
from pipelines.load.values import to_array

POSITION = "_position"  # of the record in its batch; only staged tables have it
EXTRA = "_extra"
_json_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass
class Rows:
    """Rows of one table in a batch: records, or the items of all lists at a place.

    `indexes`: the position of each row's record, its place in its list, and those of the lists
    around that. `rests` has what fits no column, by row.
    """

    place: Place
    indexes: Sequence[npt.NDArray[np.int64]]
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

    def to_arrow(self) -> Any:
        """Return the rows as a record batch."""
        names = (POSITION, *self.place.indexes)
        columns = {**dict(zip(names, self.indexes, strict=True)), **self.lengths, **self.columns}
        if self.rests:
            texts = {row: _json_text(_spelled(rest)) for row, rest in self.rests.items()}
            columns[EXTRA] = pa.array(map(texts.get, range(len(self.indexes[0]))), pa.string())
        return pa.RecordBatch.from_pydict(columns)


@dataclass
class Batch:
    """Some records of a scan, decoded together. The schema grows with what they hold.

    `left` counts by path the values that have no column.
    """

    schema: Schema
    tables: list[Rows] = field(default_factory=list)
    left: Counter[Path] = field(default_factory=Counter)
    _values: int = 0
    _discarded: int = 0

    def add(self, records: Sequence[dict[str, Any]]) -> None:
        """Add rows of records and of the lists in them. Raises LoadFailed if a value is lost."""
        self.tables.append(Rows(self.schema.places[()], [np.arange(len(records))]))
        self._add_members(self.tables[0], (), records)
        placed = self._discarded + sum(each.count() for each in self.tables)
        if placed != self._values:
            raise defect(f"{self._values:,} values of records became {placed:,}")

    def _add_members(self, rows: Rows, path: Path, objects: Sequence[dict[str, Any]]) -> None:
        """Add what the objects at a path hold; there is one for each row."""
        for name in dict.fromkeys(chain(*objects)):
            self._add(rows, (*path, name), list(map(dict.get, objects, repeat(name))))

    def _add(self, rows: Rows, path: Path, values: Sequence[Any]) -> None:
        """Add the values at a path; what does not fit goes to the rest of its row."""
        place, types = self.schema.place(path, rows.place.table, values), Counter(map(type, values))
        self._values += len(values) - types[NoneType] - types[dict] - types[list]
        left: Sequence[Any] = values
        if place is not None and place.kind is Kind.OBJECT:
            self._add_members(rows, path, [each if type(each) is dict else {} for each in values])
            left = [None if type(each) is dict else each for each in values]
        elif place is not None and place.kind is Kind.LIST:
            left = self._add_lists(rows, place, values)
        elif place is not None:
            rows.columns[place.name], left = self._fit(place, values, types)
        for row, value in enumerate(left):
            if value is not None:
                self._add_left(rows, row, path, value)

    def _fit(
        self, place: Place, values: Sequence[Any], types: Counter[type]
    ) -> tuple[pa.Array, Sequence[Any]]:
        """Return scalars as an array, and what does not fit it, None instead of others."""
        array = to_array(place, values, set(types))
        if array.null_count == types[NoneType]:
            return array, ()
        fits = array.is_valid().to_pylist()
        return array, [None if fit else each for fit, each in zip(fits, values, strict=True)]

    def _add_left(self, rows: Rows, row: int, path: Path, value: Any) -> None:
        """Put a value without a column in the rest of its row, unless it is discarded."""
        values = count_values(value)
        self._values += values if isinstance(value, dict | list) else 0  # scalars are counted
        if has_value(value):
            self.left[path] += max(values, 1)
        if self.schema.discards(path):
            self._discarded += values
        elif has_value(value):
            rows.keep(row, path, value)

    def _add_lists(self, rows: Rows, place: Place, values: Sequence[Any]) -> Sequence[Any]:
        """Add the lists of a place; return what does not fit, None instead of others."""
        lists = [each if type(each) is list else None for each in values]
        items, path = list(chain(*filter(None, lists))), (*place.path, None)
        item = self.schema.place(path, rows.place.table, items)
        if item is not None and item.kind is Kind.OBJECT:
            lengths = np.array([len(each or ()) for each in lists], np.int64)
            first = np.repeat(np.cumsum(lengths) - lengths, lengths)
            record, *outer = (np.repeat(each, lengths) for each in rows.indexes)
            self.tables.append(Rows(item, [record, np.arange(len(items)) - first, *outer]))
            self._add(self.tables[-1], path, items)
        else:
            self._add_scalar_lists(rows, item, lists)
        counts = [None if each is None else len(each) for each in lists]
        rows.lengths[f"{place.name}__count"] = pa.array(counts, pa.int64())
        return [value if each is None else None for value, each in zip(values, lists, strict=True)]

    def _add_scalar_lists(
        self, rows: Rows, item: Place | None, lists: list[list[Any] | None]
    ) -> None:
        """Add lists of scalars; in `lists`, one with an item that does not fit becomes None."""
        items, array = list(chain(*filter(None, lists))), None
        left: Sequence[Any] = items
        if item is not None:
            array, left = self._fit(item, items, Counter(map(type, items)))
        owners = [row for row, each in enumerate(lists) for _ in each or ()]
        if unfit := {owners[at] for at, each in enumerate(left) if each is not None}:
            lists[:] = [None if row in unfit else each for row, each in enumerate(lists)]
            self._add_scalar_lists(rows, item, lists)
            return
        self._values += len(items) - items.count(None)
        if item is not None:
            ends = np.cumsum([0, *(len(each or ()) for each in lists)])
            offsets, mask = pa.array(ends, pa.int32()), pa.array([each is None for each in lists])
            rows.columns[item.name] = pa.ListArray.from_arrays(offsets, array, mask=mask)


def _spelled(value: Any) -> Any:
    """Return a value with every number as text."""
    if isinstance(value, dict):
        return {name: _spelled(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_spelled(each) for each in value]
    return str(value) if type(value) is int else value
