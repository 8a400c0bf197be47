"""What the values of a place are: which kinds of column take them, and how wide the numbers are.

Here: what a scan's values say about the type of their column, each by itself. Not here: what all of
them together say (`whole_column.py`), the decision (`place.py`), and how a value becomes what the
column holds (`store.py`).
"""

from decimal import Decimal
from enum import IntEnum
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.core.parse import (
    DAY,
    DAY_BOUNDS,
    PLAIN_NUMBER,
    PLAIN_TIME,
    TIME_BOUNDS,
    parse_day,
    parse_number,
    parse_time,
    shortest,
)
from pipelines.load.place import DIGITS, HIGHEST, INTEGER_DIGITS, LOWEST, Kind, Place, Seen
from pipelines.load.records import SCALE, nearest, scale_of, unpadded
from pipelines.load.values import Sent, parts

PATTERNS: Final = {
    Kind.DECIMAL: f"^{PLAIN_NUMBER}$",
    Kind.DATE: f"^{DAY}$",
    Kind.TIME: f"^{PLAIN_TIME}$",
}
BOUNDS: Final = {Kind.DATE: DAY_BOUNDS, Kind.TIME: TIME_BOUNDS}
BITS: Final = {"0", "1"}
# What is asked of new values of a column whose kind is settled. Days may become times.
KINDS_TO_TRY: Final = {
    Kind.BOOLEAN: (Kind.BOOLEAN,),
    Kind.INTEGER: (Kind.DECIMAL,),
    Kind.DECIMAL: (Kind.DECIMAL,),
    Kind.DATE: (Kind.DATE, Kind.TIME),
    Kind.TIME: (Kind.TIME,),
}


class Fit(IntEnum):
    """How a kind of column takes values: not all; all, one by one; all by a cast of Arrow."""

    NO = 0
    SLOW = 1
    PLAIN = 2


def observe(place: Place, staged: pa.Array) -> None:
    """Note in a place what staged values are."""
    if place.declared is not None:
        # A declared type is spelled in ways that Arrow does not know, such as 007 or an epoch.
        place.seen.one_by_one.update({Kind.BOOLEAN, *PATTERNS})
    if place.kind is Kind.TEXT and not place.candidates:
        return
    for sent, part in parts(staged):
        fitting = []
        for kind in place.candidates or KINDS_TO_TRY.get(place.kind, ()):
            fit = _fit(place, kind, sent, part)
            if fit is not Fit.PLAIN:
                place.seen.one_by_one.add(kind)
            if fit is not Fit.NO:
                fitting.append(kind)
        if place.candidates:
            place.candidates = tuple(fitting)


def _fit(place: Place, kind: Kind, sent: Sent, part: pa.Array) -> Fit:
    """Return how a kind takes values that were sent alike."""
    if sent is Sent.BOOLEAN:
        place.seen.shown.add(Kind.BOOLEAN)
        return Fit.PLAIN if kind is Kind.BOOLEAN else Fit.NO
    if sent is Sent.NUMBER:
        place.seen.shown.add(Kind.DECIMAL)
    if (sent, kind) not in FITS:
        return Fit.NO
    return FITS[sent, kind](place, part, sent)


def _fit_bits(_place: Place, numbers: pa.Array, _sent: Sent) -> Fit:
    """Return how a column of booleans takes numbers: only 0 and 1."""
    spellings = {*pc.unique(numbers.cast(pa.string())).to_pylist()}
    return Fit.SLOW if spellings <= BITS else Fit.NO


def _fit_numbers(place: Place, texts: pa.Array, sent: Sent) -> Fit:
    """Return how a column of numbers takes numbers, or texts; note how wide the numbers are."""
    if pa.types.is_integer(texts.type):
        ends = pc.min_max(texts).as_py()
        largest = max(abs(ends["min"]), abs(ends["max"]))
        _note_width(place.seen, len(str(largest)), 0)
        return Fit.PLAIN
    if _are_plain_numbers(place, texts, sent):
        return Fit.PLAIN
    fit = Fit.SLOW
    for text in texts.to_pylist():
        spelled = text if place.declared is None else unpadded(text)
        number = parse_number(spelled)
        if number is not None:
            _note_number(place, number, has_exponent="e" in spelled.lower(), sent=sent)
            continue
        fit = Fit.NO
        if place.candidates:
            # The kind is no candidate any more: what else the values show does not matter.
            break
    return fit


def _are_plain_numbers(place: Place, texts: pa.Array, sent: Sent) -> bool:
    """Return whether no text needs a second look; if so, note the widths of their numbers."""
    if not pc.all(pc.match_substring_regex(texts, PATTERNS[Kind.DECIMAL])).as_py():
        return False
    digits, scales = digits_and_scales(texts)
    most_digits = pc.max(digits).as_py()
    ends = pc.min_max(scales).as_py()
    if most_digits >= INTEGER_DIGITS or ends["max"] > SCALE:
        return False
    _note_width(place.seen, most_digits, ends["max"])
    if sent is Sent.TEXT:
        place.seen.scales.update(ends.values())
        _note_point(place, ends["max"])
    return True


def digits_and_scales(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return how many digits plain numbers have before the point, and behind it."""
    unsigned = pc.utf8_ltrim(texts, "-")
    lengths = pc.binary_length(unsigned)
    points = pc.find_substring(unsigned, ".")
    digits = pc.if_else(pc.less(points, 0), lengths, points)
    behind = pc.subtract(pc.subtract(lengths, digits), 1)
    return digits, pc.max_element_wise(behind, 0)


def _note_number(place: Place, number: Decimal, *, has_exponent: bool, sent: Sent) -> None:
    """Note the width of one number, if any column of numbers can hold it."""
    seen = place.seen
    fitting = nearest(number)
    if scale_of(fitting) + max(0, fitting.adjusted() + 1) > DIGITS:
        fitting = shortest(fitting)
    scale = scale_of(fitting)
    digits = fitting.adjusted() + 1 if fitting else 0
    if sent is Sent.TEXT:
        # Of numbers that are looked at one by one, some spell the same: 1e1 and 10. So that there
        # is more than one scale, and they are compared, add one that no number has.
        seen.scales.update({-1, scale})
        if has_exponent:
            seen.has_exponent = True
    if scale + digits > DIGITS:
        return
    if sent is Sent.TEXT and has_exponent:
        seen.exponent_digits = max(seen.exponent_digits, digits)
        seen.exponent_scale = max(seen.exponent_scale, scale)
        return
    _note_width(seen, digits, scale)
    if not LOWEST <= fitting <= HIGHEST:
        seen.has_long = True
    if sent is Sent.TEXT:
        _note_point(place, scale)


def _note_width(seen: Seen, digits: int, scale: int) -> None:
    seen.digits = max(seen.digits, digits)
    seen.scale = max(seen.scale, scale)


def _note_point(place: Place, scale: int) -> None:
    """Note that a text has a point, which shows a number; the texts of a list stay texts."""
    if scale > 0 and not place.is_item:
        place.seen.shown.add(Kind.DECIMAL)


def matches(texts: pa.Array, kind: Kind) -> pa.Array:
    """Return which texts spell a value of a kind in its usual way."""
    is_match = pc.match_substring_regex(texts, PATTERNS[kind])
    if kind in BOUNDS:
        first, end = BOUNDS[kind]
        is_in_bounds = pc.and_(pc.greater_equal(texts, first), pc.less(texts, end))
        is_match = pc.and_(is_match, is_in_bounds)
    return is_match


def _fit_days(place: Place, texts: pa.Array, _sent: Sent) -> Fit:
    """Return how a column of days takes texts."""
    is_day = matches(texts, Kind.DATE)
    if pc.any(is_day).as_py():
        place.seen.shown.add(Kind.DATE)
    return Fit.PLAIN if pc.all(is_day).as_py() else Fit.NO


def _fit_times(place: Place, texts: pa.Array, _sent: Sent) -> Fit:
    """Return how a column of times takes texts; it takes days, too."""
    seen = place.seen
    if pc.all(matches(texts, Kind.TIME)).as_py():
        seen.shown.add(Kind.TIME)
        return Fit.PLAIN
    fit = Fit.SLOW
    for text in texts.to_pylist():
        if parse_time(text) is not None:
            seen.shown.add(Kind.TIME)
            continue
        is_day = parse_day(text) is not None
        if is_day and in_time_bounds(text):
            continue
        fit = Fit.NO
        if is_day:
            seen.has_extreme_day = True
        if place.candidates and not seen.has_extreme_day:
            break
    return fit


def in_time_bounds(text: str) -> bool:
    """Return whether a day or time, as text, is one that a column of times can hold."""
    first, end = TIME_BOUNDS
    return first <= text < end


FITS: Final = {
    (Sent.NUMBER, Kind.BOOLEAN): _fit_bits,
    (Sent.NUMBER, Kind.DECIMAL): _fit_numbers,
    (Sent.TEXT, Kind.DECIMAL): _fit_numbers,
    (Sent.TEXT, Kind.DATE): _fit_days,
    (Sent.TEXT, Kind.TIME): _fit_times,
}
