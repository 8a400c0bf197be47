"""Turns the staged values of a column into what it stores, and finds those that it cannot.

Here: whole columns, by a cast of Arrow where all values are spelled as usual. Not here: values one
by one (`cells.py`).

A value that the column cannot say goes to `_extra`, as it was sent: *lost*, if the column is
NULL then, or *rounded*, if the column has the nearest value.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.load.cells import Cell, converter
from pipelines.load.extras import ExtraValues, add_to_extras
from pipelines.load.observe import digits_and_scales, matches
from pipelines.load.paths import FieldPath
from pipelines.load.place import DIGITS, NUMBERS, Kind, Place
from pipelines.load.values import Sent, texts_of

ARROW_TYPES: Final = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.timestamp("us", tz="UTC"),
    Kind.TEXT: pa.string(),
}
# Numbers of 19 digits may be too large for a BIGINT, and are looked at one by one.
PLAIN_INTEGER_DIGITS: Final = 18


@dataclass
class StoredColumns:
    """The columns of a place, and the values that they do not say exactly, by row."""

    arrays: dict[str, pa.Array]
    lost: dict[int, Any] = field(default_factory=dict)
    rounded: dict[int, Any] = field(default_factory=dict)

    def for_extra(self) -> Iterator[tuple[int, Any]]:
        """Yield the values that go to `_extra`, by row."""
        yield from self.lost.items()
        yield from self.rounded.items()


def to_stored(place: Place, staged: pa.Array) -> StoredColumns:
    """Return the columns of a place as they are stored."""
    if pa.types.is_list(staged.type):
        return _store_lists(place, staged)
    return _store(place, staged)


def store_rows(
    places: Mapping[str, Place],
    rows: pa.RecordBatch,
    lost: Counter[FieldPath],
    rounded: Counter[FieldPath],
) -> dict[str, pa.Array]:
    """Return staged rows of a table as they are stored; `places` are those of its columns.

    Counts by path the values that their column does not take, or not exactly.
    """
    columns: dict[str, pa.Array] = {}
    added: ExtraValues = {}
    for name, array in zip(rows.schema.names, rows.columns, strict=True):
        place = places.get(name)
        if place is None:
            columns[name] = array
            continue
        stored = to_stored(place, array)
        columns |= stored.arrays
        lost[place.path] += len(stored.lost)
        rounded[place.path] += len(stored.rounded)
        path = place.path_in_row
        for row, value in stored.for_extra():
            added.setdefault(row, {})[path] = value
    if added:
        extras = columns.get("_extra", pa.nulls(len(rows), pa.string()))
        columns["_extra"] = add_to_extras(extras, added)
    return columns


def _store(place: Place, staged: pa.Array) -> StoredColumns:
    """Store single values: what is spelled as usual by a cast, the others one by one."""
    if place.kind is Kind.TEXT:
        return _store_texts(place, staged)
    if _pattern_of(place.kind) not in place.seen.one_by_one and _has_room(place):
        is_mixed = pa.types.is_struct(staged.type)
        return StoredColumns(_cast(place, texts_of(staged) if is_mixed else staged))
    texts = texts_of(staged)
    is_usual = _are_usual(place, staged, texts)
    stored = StoredColumns(_cast(place, pc.if_else(is_usual, texts, None)))
    is_unusual = pc.and_not(texts.is_valid(), is_usual).to_numpy(zero_copy_only=False)
    convert = converter(place)
    cells = dict[int, Cell]()
    for row in np.flatnonzero(is_unusual).tolist():
        text = texts[row].as_py()
        sent = _how_sent(staged, row)
        cell = convert(text, sent)
        if cell is None:
            stored.lost[row] = as_sent(text, sent)
            continue
        cells[row] = cell
        if not cell.is_exact:
            stored.rounded[row] = as_sent(text, sent)
    if cells:
        _replace(place, stored, cells)
    return stored


def _pattern_of(kind: Kind) -> Kind:
    """Return the kind whose spelling a column has: an integer is a decimal without a point."""
    return Kind.DECIMAL if kind is Kind.INTEGER else kind


def _store_texts(place: Place, staged: pa.Array) -> StoredColumns:
    texts = texts_of(staged)
    if place.declared is not None and place.declared.type == "json":
        # A column of JSON text: a text is in quotes, all else is JSON already.
        spelled = texts.to_pylist()
        for row, text in enumerate(spelled):
            if text is not None and _how_sent(staged, row) is Sent.TEXT:
                spelled[row] = json.dumps(text, ensure_ascii=False)
        texts = pa.array(spelled, pa.string())
    return StoredColumns({place.name: texts})


def _has_room(place: Place) -> bool:
    """Return whether a column of numbers has room for all that were seen."""
    if place.kind not in NUMBERS:
        return True
    return place.seen.scale <= place.scale and place.seen.digits <= DIGITS - place.scale


def _are_usual(place: Place, staged: pa.Array, texts: pa.Array) -> pa.Array:
    """Return which values a cast stores exactly; False for others and for no value."""
    if place.declared is not None:
        return pa.array(np.zeros(len(texts), np.bool_))
    is_usual = _were_sent_as(place.kind, staged)
    if place.kind is Kind.BOOLEAN or not pc.any(is_usual).as_py():
        return is_usual
    is_usual = pc.and_(is_usual, matches(texts, _pattern_of(place.kind)))
    if place.kind in NUMBERS:
        digits, scales = digits_and_scales(texts)
        is_integer = place.kind is Kind.INTEGER
        most_digits = PLAIN_INTEGER_DIGITS if is_integer else DIGITS - place.scale
        is_usual = pc.and_(is_usual, pc.less_equal(digits, most_digits))
        is_usual = pc.and_(is_usual, pc.less_equal(scales, place.scale))
    return pc.fill_null(is_usual, False)


def _were_sent_as(kind: Kind, staged: pa.Array) -> pa.Array:
    """Return which values were sent as a kind of column is usually sent."""
    usual = {Sent.NUMBER, Sent.TEXT}
    if kind is Kind.BOOLEAN:
        usual = {Sent.BOOLEAN}
    elif kind in {Kind.DATE, Kind.TIME}:
        usual = {Sent.TEXT}
    if pa.types.is_struct(staged.type):
        codes = pa.array([sent.value for sent in usual], pa.int8())
        return pc.is_in(pc.struct_field(staged, "sent"), codes)
    return pa.array(np.full(len(staged), _sent_of_type(staged.type) in usual))


def _cast(place: Place, staged: pa.Array) -> dict[str, pa.Array]:
    """Return the columns of values that are spelled as usual. Raises ValueError for others."""
    # By Arrow: DuckDB 1.5.5 takes 200 times as long to cast a text to DECIMAL(38, s), and rounds
    # excess digits without an error.
    arrow_type = ARROW_TYPES.get(place.kind) or pa.decimal128(DIGITS, place.scale)
    if staged.type == arrow_type:
        return {place.name: staged}
    # Through text: Arrow casts no integer to some decimals.
    texts = staged.cast(pa.string())
    columns = {place.name: texts.cast(arrow_type)}
    if place.kind is Kind.TIME:
        # The last six bytes are the offset: +01:00, or what ends with Z.
        ends = pc.binary_slice(texts.cast(pa.binary()), -6).cast(pa.string())
        columns[f"{place.name}__offset"] = pc.if_else(pc.ends_with(ends, "Z"), "Z", ends)
    return columns


def _replace(place: Place, stored: StoredColumns, cells: dict[int, Cell]) -> None:
    """Put cells into the columns."""
    rows = sorted(cells)
    for name, array in stored.arrays.items():
        if name == place.name:
            added = [cells[row].value for row in rows]
        else:
            added = [cells[row].offset for row in rows]
        mask = np.zeros(len(array), np.bool_)
        mask[rows] = True
        values = pa.array(added, array.type)
        stored.arrays[name] = pc.replace_with_mask(array, pa.array(mask), values)


def _store_lists(place: Place, staged: pa.Array) -> StoredColumns:
    """Store lists of values. A list with a value that does not fit goes to `_extra` as a whole."""
    lengths = pc.fill_null(pc.list_value_length(staged), 0).to_numpy(zero_copy_only=False)
    ends = np.cumsum([0, *lengths])
    items = staged.flatten()
    stored_items = _store(place, items)
    owners = np.repeat(np.arange(len(staged)), lengths)
    lost = {int(owners[item]) for item in stored_items.lost}
    rounded = {int(owners[item]) for item in stored_items.rounded} - lost
    is_null = staged.is_null().to_numpy(zero_copy_only=False).copy()
    is_null[list(lost)] = True
    column = pa.ListArray.from_arrays(
        pa.array(ends, pa.int32()), stored_items.arrays[place.name], mask=pa.array(is_null)
    )
    stored = StoredColumns({place.name: column})
    texts = texts_of(items)
    for row in sorted(lost | rounded):
        whole = [
            as_sent(texts[item].as_py(), _how_sent(items, item))
            for item in range(ends[row], ends[row + 1])
        ]
        if row in lost:
            stored.lost[row] = whole
        else:
            stored.rounded[row] = whole
    return stored


def _how_sent(staged: pa.Array, row: int) -> Sent:
    """Return how a value was sent."""
    if pa.types.is_struct(staged.type):
        mixed = staged[row].as_py()
        # Of no value, nobody needs to know.
        if mixed is None:
            return Sent.TEXT
        return Sent(mixed["sent"])
    return _sent_of_type(staged.type)


def _sent_of_type(staged_type: pa.DataType) -> Sent:
    """Return how values were sent that are staged alike."""
    if pa.types.is_boolean(staged_type):
        return Sent.BOOLEAN
    if pa.types.is_string(staged_type):
        return Sent.TEXT
    return Sent.NUMBER


def as_sent(text: str | None, sent: Sent) -> Any:
    """Return a staged value as `_extra` has it: every number as text."""
    if text is None or sent in {Sent.NUMBER, Sent.TEXT}:
        return text
    if sent is Sent.BOOLEAN:
        return text == "true"
    return json.loads(text, parse_int=str, parse_float=str)
