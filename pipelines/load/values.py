"""Turns the values of one place into Arrow arrays: what is staged, then what is stored."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import NoneType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.load.records import Number, to_decimal
from pipelines.load.schema import DIGITS, Kind, Place

_DAY = (
    r"([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    r"|02-(0[1-9]|1[0-9]|2[0-8]))"
    r"|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
)
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]"
PATTERNS = {
    Kind.INTEGER: r"^-?(0|[1-9][0-9]{0,17}|[1-8][0-9]{18})$",  # others may be no BIGINT
    Kind.DECIMAL: r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$",
    Kind.DATE: rf"^{_DAY}$",
    Kind.TIME: rf"^{_DAY}T{_CLOCK}:[0-5][0-9](\.[0-9]{{1,6}})?(Z|[+-]{_CLOCK})$",
}
# First and end. There is no year 0. In any time zone of a session, Python can hold these times.
BOUNDS = {Kind.DATE: ("0001", "9999-13"), Kind.TIME: ("0001-01-03", "9999-12-30")}
NUMBERS: set[type] = {int, Number}
ACCEPTED: dict[Kind, set[type]] = {
    Kind.BOOLEAN: {bool},
    Kind.INTEGER: NUMBERS,
    Kind.DECIMAL: {*NUMBERS, str},
}
# What is staged as it is, if a place has nothing else; other values are staged as text.
STAGED = {bool: pa.bool_(), int: pa.int64(), str: pa.string(), Number: pa.string()}
STORED = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.timestamp("us", tz="UTC"),
    Kind.TEXT: pa.string(),
}


def to_staged(place: Place, values: Sequence[Any], types: Iterable[type]) -> pa.Array:
    """Return values of some types as staged, NULL where one does not fit. The place may grow."""
    accepted, found, staged = ACCEPTED.get(place.kind, {str}), {*types}, None
    if native := [each for each in STAGED if each in accepted and found <= {each, NoneType}]:
        with suppress(OverflowError):  # for one that is no BIGINT
            staged = pa.array(values, STAGED[native[0]])
    if staged is None:
        spelled = [str(each) if type(each) in accepted else None for each in values]
        staged = pa.array(spelled, pa.string())
    if place.kind is Kind.TEXT:
        place.candidates = tuple(each for each in place.candidates if _all_fit(staged, place, each))
        is_number = Kind.DECIMAL in place.candidates and not NUMBERS.isdisjoint(found)
    else:
        is_number = accepted >= NUMBERS and not _all_fit(staged, place, place.kind)
    if is_number:
        return pa.array([_spell(place, each) for each in values], pa.string())
    if place.kind in BOUNDS:
        return pc.if_else(_matches(staged, place.kind), staged, None)
    return staged


def _spell(place: Place, value: Any) -> str | None:
    """Return a number as a place gets it, which may grow; None where it does not fit."""
    is_text = type(value) is str and place.kind is not Kind.INTEGER
    if type(value) not in NUMBERS and not (is_text and re.fullmatch(PATTERNS[Kind.DECIMAL], value)):
        return None
    number = to_decimal(value)
    return None if number is None else place.make_room(number)


def _all_fit(staged: pa.Array, place: Place, kind: Kind) -> bool:
    """Return whether every value is of a kind; a place of numbers may grow."""
    if pa.types.is_integer(staged.type):
        ends = (each for each in pc.min_max(staged).as_py().values() if each is not None)
        return place.widen(max((len(str(abs(each))) for each in ends), default=0), 0)
    if not pc.all(_matches(staged, kind), min_count=0).as_py():
        return False
    if kind in BOUNDS:
        return True
    unsigned = pc.utf8_ltrim(staged, "-")
    lengths, points = pc.binary_length(unsigned), pc.find_substring(unsigned, ".")
    whole = pc.if_else(pc.less(points, 0), lengths, points)
    behind = (pc.max(pc.subtract(lengths, whole)).as_py() or 1) - 1
    return place.widen(pc.max(whole).as_py() or 0, behind)


def _matches(texts: pa.Array, kind: Kind) -> pa.Array:
    found = pc.match_substring_regex(texts, PATTERNS[kind])
    if kind in BOUNDS:
        first, end = BOUNDS[kind]
        found = pc.and_(found, pc.and_(pc.greater_equal(texts, first), pc.less(texts, end)))
    return found


def to_stored(place: Place, staged: pa.Array) -> dict[str, pa.Array]:
    """Return the columns of a scalar as they are stored. Raises ValueError for what is none."""
    wanted = STORED.get(place.kind) or pa.decimal128(DIGITS, place.scale)
    if place.kind is Kind.DECIMAL:  # Arrow casts no integer to some of them
        staged = staged.cast(pa.list_(pa.string()) if place.is_item else pa.string())
    columns = {place.name: staged.cast(pa.list_(wanted) if place.is_item else wanted)}
    if place.kind is Kind.TIME:
        ends = pc.binary_slice(staged.cast(pa.binary()), -6).cast(pa.string())
        offsets = pc.if_else(pc.ends_with(ends, "Z"), "Z", ends)
        columns[f"{place.name}__offset"] = offsets
    return columns
