"""Turns staged values into what a column of a settled type stores, or says why it cannot.

A value that the column cannot say is left for `_extra`, as it was sent: *lost*, if the column is
NULL then, or *rounded*, if the column has the nearest value.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import floor
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.config.types import DeclaredType
from pipelines.core.parse import parse_day, parse_number, parse_time
from pipelines.load.observe import in_time_bounds, matches
from pipelines.load.records import EXACT, nearest, scale_of, shortest, unpadded
from pipelines.load.schema import DIGITS, HIGHEST, LOWEST, Kind, Place
from pipelines.load.values import Sent, texts_of

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
STORED: Final = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.timestamp("us", tz="UTC"),
    Kind.TEXT: pa.string(),
}
BITS: Final = {"0": False, "1": True}
LONGEST_EPOCH: Final = 20  # digits, minus one
TRUTHS: Final = {"false": False, "true": True, **BITS}


@dataclass
class Stored:
    """The columns of a place, and the values that they do not say exactly, by row."""

    columns: dict[str, pa.Array]
    lost: dict[int, Any] = field(default_factory=dict)
    rounded: dict[int, Any] = field(default_factory=dict)

    def left(self) -> Iterator[tuple[int, Any]]:
        """Yield the values that go to `_extra`, by row."""
        yield from self.lost.items()
        yield from self.rounded.items()


class Cell(NamedTuple):
    """What a column holds of a value. `offset` is that of a time, None for a day."""

    value: Any
    offset: str | None = None
    is_exact: bool = True


def to_stored(place: Place, staged: pa.Array) -> Stored:
    """Return the columns of a place as they are stored."""
    return _store_lists(place, staged) if pa.types.is_list(staged.type) else _store(place, staged)


def _store(place: Place, staged: pa.Array) -> Stored:
    """Store single values: what is spelled as usual by a cast, the others one by one."""
    kind = Kind.DECIMAL if place.kind is Kind.INTEGER else place.kind
    if kind is Kind.TEXT:
        return _store_texts(place, staged)
    if kind not in place.seen.odd and _has_room(place):
        is_mixed = pa.types.is_struct(staged.type)
        return Stored(_cast(place, texts_of(staged) if is_mixed else staged))
    texts = texts_of(staged)
    is_usual = _are_usual(place, staged, texts)
    cells = dict[int, Cell]()
    stored = Stored(_cast(place, pc.if_else(is_usual, texts, None)))
    convert = converter(place)
    for row in np.flatnonzero(
        pc.and_not(texts.is_valid(), is_usual).to_numpy(zero_copy_only=False)
    ):
        sent = _sent(staged, int(row))
        cell = convert(texts[row].as_py(), sent)
        if cell is None:
            stored.lost[int(row)] = as_sent(texts[row].as_py(), sent)
            continue
        cells[int(row)] = cell
        if not cell.is_exact:
            stored.rounded[int(row)] = as_sent(texts[row].as_py(), sent)
    if cells:
        _replace(place, stored, cells)
    return stored


def _store_texts(place: Place, staged: pa.Array) -> Stored:
    texts = texts_of(staged)
    if place.declared is not None and place.declared.type == "json":
        quoted = [
            json.dumps(text, ensure_ascii=False) if _sent(staged, row) is Sent.TEXT else text
            for row, text in enumerate(texts.to_pylist())
        ]
        texts = pa.array(quoted, pa.string())
    return Stored({place.name: texts})


def _has_room(place: Place) -> bool:
    """Return whether a column of numbers has room for all that were seen."""
    if place.kind not in {Kind.INTEGER, Kind.DECIMAL}:
        return True
    return place.seen.scale <= place.scale and place.seen.digits <= DIGITS - place.scale


def _are_usual(place: Place, staged: pa.Array, texts: pa.Array) -> pa.Array:
    """Return which values a cast stores exactly; False for others and for no value."""
    nothing = pa.array(np.zeros(len(texts), np.bool_))
    if place.declared is not None:
        return nothing
    if pa.types.is_struct(staged.type):
        wanted = [Sent.NUMBER, Sent.TEXT]
        if place.kind is Kind.BOOLEAN:
            wanted = [Sent.BOOLEAN]
        elif place.kind in {Kind.DATE, Kind.TIME}:
            wanted = [Sent.TEXT]
        is_alike = pc.is_in(pc.struct_field(staged, "sent"), pa.array(wanted, pa.int8()))
    else:
        is_alike = pc.invert(nothing)
        if not _is_alike(place.kind, staged.type):
            return nothing
    if place.kind is Kind.BOOLEAN:
        return pc.fill_null(is_alike, False)
    kind = Kind.DECIMAL if place.kind is Kind.INTEGER else place.kind
    is_usual = pc.and_(is_alike, matches(texts, kind))
    if kind is Kind.DECIMAL:
        unsigned = pc.utf8_ltrim(texts, "-")
        lengths = pc.binary_length(unsigned)
        points = pc.find_substring(unsigned, ".")
        whole = pc.if_else(pc.less(points, 0), lengths, points)
        scales = pc.subtract(pc.subtract(lengths, whole), 1)
        most = 18 if place.kind is Kind.INTEGER else DIGITS - place.scale
        has_room = pc.and_(pc.less_equal(whole, most), pc.less_equal(scales, place.scale))
        is_usual = pc.and_(is_usual, has_room)
    return pc.fill_null(is_usual, False)


def _is_alike(kind: Kind, of_type: pa.DataType) -> bool:
    """Return whether values that were all sent alike can be what a kind of column holds."""
    if kind is Kind.BOOLEAN:
        return bool(pa.types.is_boolean(of_type))
    if kind in {Kind.DATE, Kind.TIME}:
        return bool(pa.types.is_string(of_type))
    return not pa.types.is_boolean(of_type)


def _cast(place: Place, staged: pa.Array) -> dict[str, pa.Array]:
    """Return the columns of values that are spelled as usual. Raises ValueError for others."""
    wanted = STORED.get(place.kind) or pa.decimal128(DIGITS, place.scale)
    if staged.type == wanted:
        return {place.name: staged}
    texts = staged.cast(pa.string())  # Arrow casts no integer to some decimals
    columns = {place.name: texts.cast(wanted)}
    if place.kind is Kind.TIME:
        ends = pc.binary_slice(texts.cast(pa.binary()), -6).cast(pa.string())
        columns[f"{place.name}__offset"] = pc.if_else(pc.ends_with(ends, "Z"), "Z", ends)
    return columns


def _replace(place: Place, stored: Stored, cells: dict[int, Cell]) -> None:
    """Put cells into the columns."""
    rows = sorted(cells)
    for name, column in stored.columns.items():
        is_offset = name != place.name
        added = [cells[row].offset if is_offset else cells[row].value for row in rows]
        mask = np.zeros(len(column), np.bool_)
        mask[rows] = True
        values = pa.array(added, column.type)
        stored.columns[name] = pc.replace_with_mask(column, pa.array(mask), values)


def _store_lists(place: Place, staged: pa.Array) -> Stored:
    """Store lists of values. A list with a value that does not fit is left as a whole."""
    lengths = pc.fill_null(pc.list_value_length(staged), 0).to_numpy(zero_copy_only=False)
    ends = np.cumsum([0, *lengths])
    items = staged.flatten()
    found = _store(place, items)
    owners = np.repeat(np.arange(len(staged)), lengths)
    lost = {int(owners[row]) for row in found.lost}
    rounded = {int(owners[row]) for row in found.rounded} - lost
    is_null = staged.is_null().to_numpy(zero_copy_only=False).copy()
    is_null[list(lost)] = True
    offsets, mask = pa.array(ends, pa.int32()), pa.array(is_null)
    column = pa.ListArray.from_arrays(offsets, found.columns[place.name], mask=mask)
    texts = texts_of(items)

    def whole(row: int) -> list[Any]:
        places = range(ends[row], ends[row + 1])
        return [as_sent(texts[at].as_py(), _sent(items, at)) for at in places]

    return Stored(
        {place.name: column},
        {row: whole(row) for row in sorted(lost)},
        {row: whole(row) for row in sorted(rounded)},
    )


def _sent(staged: pa.Array, row: int) -> Sent:
    """Return how a value was sent."""
    if pa.types.is_struct(staged.type):
        code = staged[row].as_py()
        return Sent.TEXT if code is None else Sent(code["sent"])
    if pa.types.is_boolean(staged.type):
        return Sent.BOOLEAN
    return Sent.TEXT if pa.types.is_string(staged.type) else Sent.NUMBER


def as_sent(text: str | None, sent: Sent) -> Any:
    """Return a staged value as `_extra` has it: every number as text."""
    if text is None or sent in {Sent.NUMBER, Sent.TEXT}:
        return text
    if sent is Sent.BOOLEAN:
        return text == "true"
    return json.loads(text, parse_int=str, parse_float=str)


def converter(place: Place) -> Callable[[str, Sent], Cell | None]:
    """Return what makes the cell of a column of one value; None for a value that it cannot say."""
    if place.declared is not None:
        return _declared_converter(place, place.declared)
    return {
        Kind.BOOLEAN: _to_boolean,
        Kind.INTEGER: lambda text, sent: _to_number(place, text, sent),
        Kind.DECIMAL: lambda text, sent: _to_number(place, text, sent),
        Kind.DATE: _to_day,
        Kind.TIME: _to_time,
    }[place.kind]


def _to_boolean(text: str, sent: Sent) -> Cell | None:
    if sent is Sent.BOOLEAN:
        return Cell(text == "true")
    return Cell(BITS[text]) if sent is Sent.NUMBER and text in BITS else None


def _to_number(place: Place, text: str, sent: Sent) -> Cell | None:
    if sent not in {Sent.NUMBER, Sent.TEXT}:
        return None
    if sent is Sent.TEXT and place.kind is Kind.INTEGER and "e" in text.lower():
        return None
    number = parse_number(text)
    return None if number is None else _fit_number(place, number)


def _fit_number(place: Place, number: Decimal) -> Cell | None:
    """Return a number as a column of numbers holds it, the nearest if it has too many digits."""
    fitting = shortest(nearest(number)) if number else Decimal(0)
    if scale_of(fitting) > place.scale:
        return None
    if place.kind is Kind.INTEGER:
        is_long = not LOWEST <= fitting <= HIGHEST
        return None if is_long else Cell(int(fitting), is_exact=fitting == number)
    if fitting and fitting.adjusted() + 1 > DIGITS - place.scale:
        return None
    unit = Decimal((0, (1,), -place.scale))
    return Cell(fitting.quantize(unit, context=EXACT), is_exact=fitting == number)


def _to_day(text: str, sent: Sent) -> Cell | None:
    day = parse_day(text) if sent is Sent.TEXT else None
    return None if day is None else Cell(day)


def _to_time(text: str, sent: Sent) -> Cell | None:
    """Return a time; a day is its midnight in UTC, without an offset."""
    if sent is not Sent.TEXT:
        return None
    moment = parse_time(text)
    if moment is not None:
        return Cell(moment.utc, moment.offset, not moment.is_cut)
    day = parse_day(text)
    return Cell(midnight(day)) if day is not None and in_time_bounds(text) else None


def midnight(day: date) -> datetime:
    """Return the moment that a column of times holds of a day."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _declared_converter(place: Place, declared: DeclaredType) -> Callable[[str, Sent], Cell | None]:
    """Return a converter for a type that settings say."""

    def convert(text: str, sent: Sent) -> Cell | None:
        if sent is Sent.CONTAINER:
            return None
        if place.kind is Kind.BOOLEAN:
            return Cell(TRUTHS[text.lower()]) if text.lower() in TRUTHS else None
        if sent is Sent.BOOLEAN:
            return None
        if place.kind in {Kind.INTEGER, Kind.DECIMAL}:
            number = parse_number(unpadded(text))
            return None if number is None else _fit_number(place, number)
        if declared.type in EPOCH_UNITS:
            return _to_epoch(text, EPOCH_UNITS[declared.type])
        usual = _to_day(text, sent) if place.kind is Kind.DATE else _to_time(text, sent)
        return (
            _to_spelled(text, declared) if declared.format else usual or _to_local(text, declared)
        )

    return convert


EPOCH_UNITS: Final = {"epoch_seconds": 1_000_000, "epoch_milliseconds": 1_000}


def _to_epoch(text: str, microseconds: int) -> Cell | None:
    """Return the time that is so many units after 1970 began, in UTC."""
    number = parse_number(text)
    if number is None or number.adjusted() > LONGEST_EPOCH:
        return None
    exact = EXACT.multiply(number, microseconds)
    whole = floor(exact)
    try:
        moment = EPOCH + timedelta(microseconds=whole)
    except OverflowError:
        return None
    return Cell(moment, "Z", whole == exact) if in_time_bounds(moment.isoformat()) else None


def _to_local(text: str, declared: DeclaredType) -> Cell | None:
    """Return a time without a zone as one of the declared zone."""
    is_local = declared.zone is not None and parse_time(f"{text}Z") is not None
    return _in_zone(datetime.fromisoformat(text[:26]), declared) if is_local else None


def _to_spelled(text: str, declared: DeclaredType) -> Cell | None:
    """Return a day or time that is spelled in the declared way."""
    try:
        moment = datetime.strptime(text, declared.format or "")  # noqa: DTZ007
        return Cell(moment.date()) if declared.type == "date" else _in_zone(moment, declared)
    except ValueError:
        return None


def _in_zone(moment: datetime, declared: DeclaredType) -> Cell | None:
    """Return a moment, which is of the declared zone if it says none."""
    try:
        local = moment.replace(tzinfo=declared.zone) if moment.tzinfo is None else moment
        utc = local.astimezone(UTC)
    except OverflowError:
        return None
    offset = f"{local:%z}"
    return Cell(utc, f"{offset[:3]}:{offset[3:5]}") if in_time_bounds(utc.isoformat()) else None
