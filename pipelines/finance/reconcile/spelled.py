"""Reads what a role's value says from how it was sent, whatever column holds it.

Here: which number, day, moment or text a spelling says. None: it says none, and is never guessed.
"""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from enum import StrEnum
from typing import Any, Final
from zoneinfo import ZoneInfo

from pipelines.core.parse import parse_day, parse_number, parse_time
from pipelines.finance.reconcile.roles import name_of

MONTH: Final = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
DAY_LENGTH: Final = len("2026-09-01")
DIGITS: Final = 38  # of the widest decimal
EXACT: Final = Context(prec=2 * DIGITS)
# Digits behind the point that count: nobody bills less. Twenty are left before the point, so that
# sums do not overflow.
MOST_SCALE: Final = 18


class Kind(StrEnum):
    """What the value of a role is."""

    NUMBER = "number"
    DAY = "day"
    TIME = "time"
    TEXT = "text"


def kind_of(role: str) -> Kind:
    """Return what the value of a role such as `usage.amount` is."""
    name = measure_of(role)
    if name in {"quantity", "price", "amount"}:
        return Kind.NUMBER
    if name in {"recorded", "updated", "issued"}:
        return Kind.TIME
    if name in {"period", "due", "paid"}:
        return Kind.DAY
    return Kind.TEXT


def measure_of(role: str) -> str:
    """Return what a role measures: `usage.amount`, `billing.line_amount` and tax are amounts."""
    name = name_of(role).removeprefix("line_")
    return "amount" if name in {"open", "tax"} else name


def read_value(kind: Kind, text: str, zone: ZoneInfo) -> Decimal | date | str | None:
    """Return what a text says. A moment is a day in a time zone; a day without one is local."""
    if kind is Kind.NUMBER:
        return parse_number(text)
    if kind is Kind.TEXT:
        return text
    if kind is Kind.DAY:
        return _read_day(text, zone)
    return _read_moment(text, zone)


def _read_day(text: str, zone: ZoneInfo) -> date | None:
    """Return the day of a date, a moment, a time without a zone, or the first one of a month."""
    if MONTH.fullmatch(text):
        return parse_day(f"{text}-01")
    day = parse_day(text)
    if day is not None:
        return day
    moment = parse_time(text)
    if moment:
        return moment.utc.astimezone(zone).date()
    if parse_time(f"{text}Z"):  # a time without a zone
        return date.fromisoformat(text[:DAY_LENGTH])
    return None


def _read_moment(text: str, zone: ZoneInfo) -> datetime | None:
    """Return a moment; that of a day is its beginning."""
    moment = parse_time(text)
    if moment:
        return moment.utc
    local = parse_time(f"{text}Z")
    if local:
        return local.utc.replace(tzinfo=zone).astimezone(UTC)
    day = _read_day(text, zone)
    if day is None:
        return None
    # In UTC, the first and the last day that there is may be out of range.
    try:
        return datetime.combine(day, time(), zone).astimezone(UTC)
    except OverflowError:
        return None


def find_sent(value: Any, names: Sequence[str]) -> Any:
    """Return what a row sent at a place; None for nothing.

    A list stands for what cannot be a value: an object, a list, or something else on the way.
    """
    for name in names:
        if not isinstance(value, dict):
            return [value]
        value = value.get(name)
        if value is None:
            return None
    if isinstance(value, dict | list):
        return [value]
    return value


def text_of(sent: Any) -> str:
    """Return what was sent as text."""
    if isinstance(sent, list):
        return json.dumps(sent[0], ensure_ascii=False)
    if isinstance(sent, bool):
        return json.dumps(sent)
    return str(sent)


def read_sent(kind: Kind, sent: Any, zone: ZoneInfo) -> Decimal | date | str | None:
    """Return what a value says that has no column; a boolean is only text."""
    if isinstance(sent, list):
        return None
    if isinstance(sent, bool) and kind is not Kind.TEXT:
        return None
    return read_value(kind, text_of(sent), zone)


def scale_of(numbers: Iterable[Any]) -> int:
    """Return the digits behind the point that some numbers need; other values need none."""
    scale = 0
    for number in numbers:
        if isinstance(number, Decimal):
            scale = max(scale, -int(number.as_tuple().exponent))
    return min(scale, MOST_SCALE)


def round_number(number: Decimal) -> Decimal:
    """Return a number with the digits behind the point that count."""
    if scale_of([number]) < MOST_SCALE:
        return number
    rounded = fit(number, MOST_SCALE)
    return number if rounded is None else rounded


def fit(value: Any, scale: int) -> Any:
    """Return a number with so many digits behind the point, the nearest; None if it is too large.

    Other values are as they are.
    """
    if not isinstance(value, Decimal):
        return value
    if not value:
        return Decimal(0)
    if value.adjusted() + 1 + scale > DIGITS:
        return None
    rounded = EXACT.quantize(value, Decimal(1).scaleb(-scale))
    # 9.99 may have become 10.0, with a digit more.
    if rounded.adjusted() + 1 + scale > DIGITS:
        return None
    return rounded
