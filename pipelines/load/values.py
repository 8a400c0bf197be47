"""Turns the values of one place into Arrow arrays: text in the stage, then what is stored."""

import re
from collections.abc import Collection, Sequence
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
# There is no year 0. In any time zone of a session, Python can hold the other times.
REFUSED = {Kind.DATE: "^0000", Kind.TIME: "^(0000|0001-01-0[12]|9999-12-3[01])"}
NUMBERS: set[type] = {int, Number}
ACCEPTED: dict[Kind, set[type]] = {
    Kind.BOOLEAN: {bool},
    Kind.INTEGER: NUMBERS,
    Kind.DECIMAL: {*NUMBERS, str},
}
STORED = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.timestamp("us", tz="UTC"),
    Kind.TEXT: pa.string(),
}


def to_texts(place: Place, values: Sequence[Any], types: Collection[type]) -> pa.Array:
    """Return values of some types as text, NULL where one does not fit. The place may grow."""
    accepted, texts = ACCEPTED.get(place.kind, {str}), None
    if str in accepted and {*types} <= {str, NoneType}:
        texts = pa.array(values, pa.string())
    elif int in accepted and {*types} <= {int, NoneType}:
        with suppress(OverflowError):  # for one that is no BIGINT
            texts = pa.array(values, pa.int64()).cast(pa.string())
    if texts is None:
        spelled = (str(each) if type(each) in accepted else None for each in values)
        texts = pa.array(spelled, pa.string(), size=len(values))
    if place.kind is Kind.TEXT:
        place.candidates = tuple(each for each in place.candidates if _all_fit(texts, place, each))
        is_number = Kind.DECIMAL in place.candidates and not NUMBERS.isdisjoint(types)
    else:
        is_number = accepted >= NUMBERS and not _all_fit(texts, place, place.kind)
    if is_number:
        return pa.array([_spell(place, each) for each in values], pa.string())
    if place.kind in REFUSED:
        return pc.if_else(_matches(texts, place.kind), texts, None)
    return texts


def _spell(place: Place, value: Any) -> str | None:
    """Return a number as a place gets it, which may grow; None where it does not fit."""
    is_text = type(value) is str and place.kind is not Kind.INTEGER
    if type(value) not in NUMBERS and not (is_text and re.fullmatch(PATTERNS[Kind.DECIMAL], value)):
        return None
    number = to_decimal(value)
    return None if number is None else place.make_room(number)


def _all_fit(texts: pa.Array, place: Place, kind: Kind) -> bool:
    """Return whether every text is of a kind; a place of numbers may grow."""
    if not pc.all(_matches(texts, kind), min_count=0).as_py():
        return False
    if kind in REFUSED:
        return True
    unsigned = pc.utf8_ltrim(texts, "-")
    lengths, points = pc.utf8_length(unsigned), pc.find_substring(unsigned, ".")
    whole = pc.if_else(pc.less(points, 0), lengths, points)
    behind = (pc.max(pc.subtract(lengths, whole)).as_py() or 1) - 1
    return place.widen(pc.max(whole).as_py() or 0, behind)


def _matches(texts: pa.Array, kind: Kind) -> pa.Array:
    found = pc.match_substring_regex(texts, PATTERNS[kind])
    if kind not in REFUSED:
        return found
    return pc.and_not(found, pc.match_substring_regex(texts, REFUSED[kind]))


def to_stored(place: Place, texts: pa.Array) -> dict[str, pa.Array]:
    """Return the columns of a scalar as they are stored. Raises ValueError for what is none."""
    wanted = STORED.get(place.kind) or pa.decimal128(DIGITS, place.scale)
    columns = {place.name: texts.cast(pa.list_(wanted) if place.is_item else wanted)}
    if place.kind is Kind.TIME:
        offsets = pc.if_else(pc.ends_with(texts, "Z"), "Z", pc.utf8_slice_codeunits(texts, -6))
        columns[f"{place.name}__offset"] = offsets
    return columns
