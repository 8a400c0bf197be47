"""What the values of a place are: which kinds of column take them, and how wide the numbers are.

Here: what a scan's values say about the type of their column. Not here: the decision, in
`schema.py`, and how a value becomes what the column holds, in `store.py`.
"""

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
)
from pipelines.load.records import SCALE, nearest, scale_of, shortest, unpadded
from pipelines.load.schema import (
    DIGITS,
    HIGHEST,
    INTEGER_DIGITS,
    LOWEST,
    Kind,
    Place,
    Seen,
)
from pipelines.load.values import Sent, parts

PATTERNS: Final = {
    Kind.DECIMAL: f"^{PLAIN_NUMBER}$",
    Kind.DATE: f"^{DAY}$",
    Kind.TIME: f"^{PLAIN_TIME}$",
}
BOUNDS: Final = {Kind.DATE: DAY_BOUNDS, Kind.TIME: TIME_BOUNDS}
BITS: Final = {"0", "1"}
KINDS: Final = {  # which the values of a column tell, once its kind is settled
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
        place.seen.odd.update(PATTERNS)
        place.seen.odd.add(Kind.BOOLEAN)
    if place.kind is Kind.TEXT and not place.candidates:
        return
    for sent, part in parts(staged):
        kinds = place.candidates or KINDS.get(place.kind, ())
        fits = {kind: _fit(place, kind, sent, part) for kind in kinds}
        place.seen.odd.update(kind for kind, fit in fits.items() if fit is not Fit.PLAIN)
        if place.candidates:
            place.candidates = tuple(kind for kind, fit in fits.items() if fit is not Fit.NO)


def _fit(place: Place, kind: Kind, sent: Sent, part: pa.Array) -> Fit:
    """Return how a kind takes values that were sent alike."""
    if sent is Sent.BOOLEAN:
        place.seen.shown.add(Kind.BOOLEAN)
        return Fit.PLAIN if kind is Kind.BOOLEAN else Fit.NO
    if sent is Sent.NUMBER:
        place.seen.shown.add(Kind.DECIMAL)
    find = FITS.get((sent, kind))
    return Fit.NO if find is None else find(place, part, sent)


def _fit_bits(_place: Place, numbers: pa.Array, _sent: Sent) -> Fit:
    bits = {*pc.unique(numbers.cast(pa.string())).to_pylist()}
    return Fit.SLOW if bits <= BITS else Fit.NO


def _fit_numbers(place: Place, texts: pa.Array, sent: Sent) -> Fit:
    """Return how a column of numbers takes numbers, or texts; note how wide the numbers are."""
    if pa.types.is_integer(texts.type):
        ends = pc.min_max(texts).as_py().values()
        _note_width(place.seen, max(len(str(abs(each))) for each in ends), 0)
        return Fit.PLAIN
    if _are_plain_numbers(place, texts, sent):
        return Fit.PLAIN
    fit = Fit.SLOW
    spelled = texts.to_pylist()
    if place.declared is not None:
        spelled = [unpadded(text) for text in spelled]
    for text in spelled:
        if parse_number(text) is not None:
            _note_number(place, text, sent)
        elif place.candidates:
            return Fit.NO
        else:
            fit = Fit.NO
    return fit


def _are_plain_numbers(place: Place, texts: pa.Array, sent: Sent) -> bool:
    """Return whether no text needs a second look; if so, note the widths of their numbers."""
    if not pc.all(pc.match_substring_regex(texts, PATTERNS[Kind.DECIMAL])).as_py():
        return False
    unsigned = pc.utf8_ltrim(texts, "-")
    lengths = pc.binary_length(unsigned)
    points = pc.find_substring(unsigned, ".")
    whole = pc.if_else(pc.less(points, 0), lengths, points)
    digits = pc.max(whole).as_py()
    scales = pc.max_element_wise(pc.subtract(pc.subtract(lengths, whole), 1), 0)
    ends = pc.min_max(scales).as_py()
    if digits >= INTEGER_DIGITS or ends["max"] > SCALE:
        return False
    _note_width(place.seen, digits, ends["max"])
    if sent is Sent.TEXT:
        place.seen.scales.update(ends.values())
        _note_point(place, ends["max"])
    return True


def _note_number(place: Place, text: str, sent: Sent) -> None:
    """Note the width of one number, if any column of numbers can hold it."""
    seen = place.seen
    number = parse_number(text)
    has_exponent = "e" in text.lower()
    if number is None:
        return
    fitting = nearest(number)
    if scale_of(fitting) + max(0, fitting.adjusted() + 1) > DIGITS:
        fitting = shortest(fitting)
    scale = scale_of(fitting)
    digits = fitting.adjusted() + 1 if fitting else 0
    if sent is Sent.TEXT:
        seen.scales.update((-1, scale))  # more than one: two texts may spell one number
    if sent is Sent.TEXT and has_exponent:
        seen.has_exponent = True
        if scale + digits <= DIGITS:
            seen.exponent_digits = max(seen.exponent_digits, digits)
            seen.exponent_scale = max(seen.exponent_scale, scale)
    elif scale + digits <= DIGITS:
        _note_width(seen, digits, scale)
        seen.has_long = seen.has_long or not LOWEST <= fitting <= HIGHEST
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
    found = pc.match_substring_regex(texts, PATTERNS[kind])
    if kind in BOUNDS:
        first, end = BOUNDS[kind]
        found = pc.and_(found, pc.and_(pc.greater_equal(texts, first), pc.less(texts, end)))
    return found


def _fit_days(place: Place, texts: pa.Array, _sent: Sent) -> Fit:
    found = matches(texts, Kind.DATE)
    if pc.any(found).as_py():
        place.seen.shown.add(Kind.DATE)
    return Fit.PLAIN if pc.all(found).as_py() else Fit.NO


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
        elif parse_day(text) is None or not in_time_bounds(text):
            seen.has_extreme_day = seen.has_extreme_day or parse_day(text) is not None
            fit = Fit.NO
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
