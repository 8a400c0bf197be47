"""Turns one value into what a column of a settled type holds of it.

Here: values one by one, in any spelling that a type takes. Not here: whole columns (`store.py`),
most of which are stored by one cast.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import floor
from typing import Any, Final, NamedTuple, TypeAlias

from pipelines.config.types import DeclaredType
from pipelines.core.parse import EXACT, parse_day, parse_number, parse_time, shortest
from pipelines.load.observe import in_time_bounds
from pipelines.load.place import DIGITS, HIGHEST, LOWEST, NUMBERS, Kind, Place
from pipelines.load.records import nearest, scale_of, unpadded
from pipelines.load.values import Sent

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# In microseconds.
EPOCH_UNITS: Final = {"epoch_seconds": 1_000_000, "epoch_milliseconds": 1_000}
# Exponent of the first digit of an epoch. No larger one is a time.
LARGEST_EPOCH_EXPONENT: Final = 20
BITS: Final = {"0": False, "1": True}
TRUTHS: Final = {"false": False, "true": True, **BITS}


class Cell(NamedTuple):
    """What a column holds of a value. `offset` is that of a time, None for a day."""

    value: Any
    offset: str | None = None
    is_exact: bool = True


Converter: TypeAlias = Callable[[str, Sent], Cell | None]
"""Makes the cell of a value, given its text and how it was sent; None if no cell can say it."""


def converter(place: Place) -> Converter:
    """Return what makes the cells of a column."""
    if place.declared is not None:
        return _declared_converter(place, place.declared)
    if place.kind is Kind.BOOLEAN:
        return _to_boolean
    if place.kind is Kind.DATE:
        return _to_day
    if place.kind is Kind.TIME:
        return _to_time

    def to_number(text: str, sent: Sent) -> Cell | None:
        return _to_number(place, text, sent)

    return to_number


def _to_boolean(text: str, sent: Sent) -> Cell | None:
    if sent is Sent.BOOLEAN:
        return Cell(text == "true")
    if sent is Sent.NUMBER and text in BITS:
        return Cell(BITS[text])
    return None


def _to_number(place: Place, text: str, sent: Sent) -> Cell | None:
    if sent not in {Sent.NUMBER, Sent.TEXT}:
        return None
    # Only columns of decimals take texts with an exponent.
    if sent is Sent.TEXT and place.kind is Kind.INTEGER and "e" in text.lower():
        return None
    number = parse_number(text)
    return None if number is None else _fit_number(place, number)


def _fit_number(place: Place, number: Decimal) -> Cell | None:
    """Return a number as a column of numbers holds it, the nearest if it has too many digits."""
    # Of -0 and 0e5, too: a column has one 0.
    fitting = Decimal(0)
    if number:
        fitting = shortest(nearest(number))
    if scale_of(fitting) > place.scale:
        return None
    if place.kind is Kind.INTEGER:
        if not LOWEST <= fitting <= HIGHEST:
            return None
        return Cell(int(fitting), is_exact=fitting == number)
    if fitting and fitting.adjusted() + 1 > DIGITS - place.scale:
        return None
    unit = Decimal((0, (1,), -place.scale))
    return Cell(fitting.quantize(unit, context=EXACT), is_exact=fitting == number)


def _to_day(text: str, sent: Sent) -> Cell | None:
    if sent is not Sent.TEXT:
        return None
    day = parse_day(text)
    return None if day is None else Cell(day)


def _to_time(text: str, sent: Sent) -> Cell | None:
    """Return a time; a day is its midnight in UTC, without an offset."""
    if sent is not Sent.TEXT:
        return None
    moment = parse_time(text)
    if moment is not None:
        return Cell(moment.utc, moment.offset, not moment.is_cut)
    day = parse_day(text)
    if day is None or not in_time_bounds(text):
        return None
    return Cell(_midnight(day))


def _midnight(day: date) -> datetime:
    """Return the moment that a column of times holds of a day."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _declared_converter(place: Place, declared: DeclaredType) -> Converter:
    """Return a converter for a type that settings say."""

    def convert(text: str, sent: Sent) -> Cell | None:
        if sent is Sent.CONTAINER:
            return None
        if place.kind is Kind.BOOLEAN:
            truth = TRUTHS.get(text.lower())
            return None if truth is None else Cell(truth)
        if sent is Sent.BOOLEAN:
            return None
        if place.kind in NUMBERS:
            number = parse_number(unpadded(text))
            return None if number is None else _fit_number(place, number)
        return _to_declared_time(text, sent, declared)

    return convert


def _to_declared_time(text: str, sent: Sent, declared: DeclaredType) -> Cell | None:
    """Return a day or time of a declared type: the spelling that it names, or the usual ones."""
    if declared.type in EPOCH_UNITS:
        return _to_epoch(text, EPOCH_UNITS[declared.type])
    if declared.format:
        return _to_spelled(text, declared)
    usual = _to_day(text, sent) if declared.type == "date" else _to_time(text, sent)
    return usual or _to_local(text, declared)


def _to_epoch(text: str, microseconds: int) -> Cell | None:
    """Return the time that is so many units after 1970 began, in UTC."""
    number = parse_number(text)
    if number is None or number.adjusted() > LARGEST_EPOCH_EXPONENT:
        return None
    exact = EXACT.multiply(number, microseconds)
    whole = floor(exact)
    try:
        moment = EPOCH + timedelta(microseconds=whole)
    except OverflowError:
        return None
    if not in_time_bounds(moment.isoformat()):
        return None
    return Cell(moment, "Z", whole == exact)


def _to_local(text: str, declared: DeclaredType) -> Cell | None:
    """Return a time without a zone as one of the declared zone."""
    moment = parse_time(f"{text}Z")
    if declared.zone is None or moment is None:
        return None
    cell = _in_zone(moment.utc.replace(tzinfo=None), declared)
    return None if cell is None else cell._replace(is_exact=not moment.is_cut)


def _to_spelled(text: str, declared: DeclaredType) -> Cell | None:
    """Return a day or time that is spelled in the declared way."""
    try:
        moment = datetime.strptime(text, declared.format or "")  # noqa: DTZ007
        if declared.type == "date":
            return Cell(moment.date())
        return _in_zone(moment, declared)
    except ValueError:
        return None


def _in_zone(moment: datetime, declared: DeclaredType) -> Cell | None:
    """Return a moment, which is of the declared zone if it says none."""
    try:
        local = moment
        if moment.tzinfo is None:
            local = moment.replace(tzinfo=declared.zone)
        utc = local.astimezone(UTC)
    except OverflowError:
        return None
    if not in_time_bounds(utc.isoformat()):
        return None
    offset = f"{local:%z}"
    return Cell(utc, f"{offset[:3]}:{offset[3:5]}")
