"""Turns the values of one place into Arrow arrays: as they are staged, and as they are stored."""

import re
from collections.abc import Sequence
from contextlib import suppress
from types import NoneType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.load.records import Number, to_decimal
from pipelines.load.schema import DIGITS, Kind, Place
from pipelines.load.target import defect

_DAY = (
    r"([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    r"|02-(0[1-9]|1[0-9]|2[0-8]))"
    r"|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
)
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]"
PATTERNS = {
    Kind.DECIMAL: r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$",
    Kind.DATE: rf"^{_DAY}$",
    Kind.TIME: rf"^{_DAY}T{_CLOCK}:[0-5][0-9](\.[0-9]{{1,6}})?(Z|[+-]{_CLOCK})$",
}
# There is no year 0. In any time zone of a session, Python can hold the other times.
REFUSED = {
    Kind.DECIMAL: "^$",
    Kind.DATE: "^0000",
    Kind.TIME: "^(0000|0001-01-0[12]|9999-12-3[01])",
}
STORED = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.timestamp("us", tz="UTC"),
    Kind.TEXT: pa.string(),
}


def to_array(place: Place, values: Sequence[Any], types: set[type]) -> pa.Array:
    """Return values of some types for a column, NULL where one does not fit. The place may grow.

    Numbers may be text until `to_stored`.
    """
    if place.kind is Kind.BOOLEAN:
        return pa.array([each if type(each) is bool else None for each in values], pa.bool_())
    if place.kind in {Kind.INTEGER, Kind.DECIMAL}:
        return _to_numbers(place, values, types)
    plain = {str, NoneType}
    texts = values if types <= plain else [each if type(each) in plain else None for each in values]
    array = pa.array(texts, pa.string())
    if place.kind in PATTERNS:
        return pc.if_else(_matches(array, place.kind), array, None)
    place.candidates = tuple(each for each in place.candidates if _all_fit(array, place, each))
    if Kind.DECIMAL in place.candidates and types & {int, Number}:
        return pa.array([_spell(place, each) for each in values], pa.string())
    return array


def _to_numbers(place: Place, values: Sequence[Any], types: set[type]) -> pa.Array:
    """Return numbers at once if all of them fit, else one by one."""
    if place.kind is Kind.INTEGER and types <= {int, NoneType}:
        with suppress(OverflowError):
            array = pa.array(values, pa.int64())
            ends = [str(abs(each or 0)) for each in pc.min_max(array).as_py().values()]
            place.digits = max(place.digits, *map(len, ends))
            return array
    if place.kind is Kind.DECIMAL and types <= {int, Number, str, NoneType}:
        array = pa.array([each if each is None else str(each) for each in values], pa.string())
        if _all_fit(array, place, Kind.DECIMAL):
            return array
    return pa.array([_spell(place, each) for each in values], pa.string())


def _spell(place: Place, value: Any) -> str | None:
    """Return a value as a column of numbers gets it; None where it does not fit."""
    is_text = type(value) is str and place.kind is not Kind.INTEGER
    if is_text and not re.fullmatch(PATTERNS[Kind.DECIMAL], value):
        return None
    is_number = is_text or type(value) in {int, Number}
    number = to_decimal(value) if is_number else None
    return None if number is None else place.make_room(number)


def _all_fit(texts: pa.Array, place: Place, kind: Kind) -> bool:
    """Return whether every text is of a kind; a place of decimals may grow."""
    if not pc.all(_matches(texts, kind), min_count=0).as_py():
        return False
    if kind is not Kind.DECIMAL:
        return True
    unsigned = pc.utf8_ltrim(texts, "-")
    lengths, points = pc.utf8_length(unsigned), pc.find_substring(unsigned, ".")
    whole = pc.if_else(pc.less(points, 0), lengths, points)
    behind = (pc.max(pc.subtract(lengths, whole)).as_py() or 1) - 1
    return place.widen(pc.max(whole).as_py() or 0, behind)


def _matches(texts: pa.Array, kind: Kind) -> pa.Array:
    refused = pc.match_substring_regex(texts, REFUSED[kind])
    return pc.and_not(pc.match_substring_regex(texts, PATTERNS[kind]), refused)


def to_stored(place: Place, array: pa.Array) -> dict[str, pa.Array]:
    """Return the columns of a scalar as they are stored. Raises LoadFailed if a value gets lost."""
    is_decimal, reason = place.kind is Kind.DECIMAL, "values became NULL"
    wanted = pa.decimal128(DIGITS, place.scale) if is_decimal else STORED[place.kind]
    stored = array
    try:
        for each in [pa.string(), wanted] if is_decimal else [wanted]:  # BIGINT may be too short
            stored = stored.cast(pa.list_(each) if place.is_item else each)
    except pa.ArrowInvalid as error:
        stored, reason = pa.nulls(len(array)), str(error)
    if stored.null_count != array.null_count:
        raise defect(f"values of {place.table}.{place.name} cannot be stored: {reason}")
    if place.kind is not Kind.TIME:
        return {place.name: stored}
    offsets = pc.if_else(pc.ends_with(array, "Z"), "Z", pc.utf8_slice_codeunits(array, start=-6))
    return {place.name: stored, f"{place.name}__offset": offsets}
