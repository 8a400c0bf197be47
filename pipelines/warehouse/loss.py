"""The loss check: of every path, as many values in the columns as there were in the records.

The fast path needs none: Arrow's reader refuses what its schema does not hold. On the exact path we
place the values ourselves, so they are counted on both sides, in two ways that share nothing. Also:
after each load a table holds as many rows more as were loaded (database.append).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.api.problem import cleaned
from pipelines.errors import LandingFailed
from pipelines.warehouse.arrow import MISFIT, VALUE
from pipelines.warehouse.misfits import ITEM, Path
from pipelines.warehouse.room import Rules
from pipelines.warehouse.schema import Kind, Shape

REST = "the rest"  # the step of a path to all fields of a table's row that have no column


class ValuesLost(LandingFailed):
    """Values were sent that would have no place in the tables: a defect of ours."""


def check(
    sent: Iterable[dict[str, Any]], records: pa.StructArray, shape: Shape, rules: Rules
) -> None:
    """Raise ValuesLost where a path holds another number of values than were sent."""
    counts = _Sent(rules.rest)
    for record in sent:
        counts.row(record, shape, ())
    before, landed = counts.values, Counter[Path]()
    _count_landed(records, shape, (), landed)
    wrong = sorted(path for path in {*before, *landed} if before[path] != landed[path])
    if wrong:
        path = wrong[0]
        raise ValuesLost(
            f"{before[path]:,} values were sent at {cleaned('.'.join(path)) or 'the item'}, but "
            f"{landed[path]:,} have a place in the tables. This is a defect of partner-sync: "
            "please report it. Nothing is lost, the archive has it all"
        )


@dataclass
class _Sent:
    """The values of records by path; without `rest`, what has no column is left out on purpose."""

    rest: bool
    values: Counter[Path] = field(default_factory=Counter)

    def row(self, value: Mapping[str, Any], shape: Shape, path: Path) -> None:
        """Count what is in one row of a table, and its rest as one value."""
        unknown = self._members(value, shape, path)
        if unknown and (shape.rest or self.rest):
            self.values[*path, REST] += 1

    def _members(self, value: Mapping[str, Any], shape: Shape, path: Path) -> bool:
        """Count an object's members; tell whether any of them has no column."""
        unknown = any(name not in shape.fields for name in value)
        for name, each in shape.fields.items():
            inside = value.get(name)
            if each.kind is Kind.OBJECT and isinstance(inside, dict):
                unknown |= self._members(inside, each, (*path, name))
            elif inside is not None:
                self._value(inside, each, (*path, name))
        return unknown

    def _value(self, value: Any, shape: Shape, path: Path) -> None:
        self.values[path] += 1
        if isinstance(value, list) and shape.item is not None and shape.holds(value):
            self.values[*path, ITEM] += len(value)
            for each in value:
                if shape.item.kind is Kind.OBJECT and isinstance(each, dict):
                    self.row(each, shape.item, (*path, ITEM, ITEM))
                elif each is not None:
                    self._value(each, shape.item, (*path, ITEM, ITEM))


def _count_landed(array: pa.Array, shape: Shape, path: Path, counts: Counter[Path]) -> None:
    """Count what is not null in the columns of an array."""
    if shape.misfits:
        counts[path] += _there(pc.struct_field(array, MISFIT))
        array = pc.struct_field(array, VALUE)
    if shape.kind is Kind.OBJECT:
        parts = array.flatten()
        if shape.rest:
            counts[*path, REST] += _there(parts.pop())
        for (name, each), part in zip(shape.fields.items(), parts, strict=True):
            _count_landed(part, each, (*path, name), counts)
        return
    counts[path] += _there(array)
    if shape.kind is Kind.ARRAY and shape.item is not None:
        items = pc.list_flatten(array)
        counts[*path, ITEM] += len(items)
        _count_landed(items, shape.item, (*path, ITEM, ITEM), counts)


def _there(array: pa.Array) -> int:
    return len(array) - int(array.null_count)
