"""Reads numbers, days and times that were sent as text. Nothing else in the product does.

Here: which texts say a number, a day or a moment, and which one. Not here: which column takes them
(`load/values.py`), what a role makes of them (`reconcile`). A cast of DuckDB is no substitute: it
reads ` 5 `, `007`, `0x1A` and `1_000` as integers, `11e-4` as 0, and `infinity` as a date.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import MAX_PREC, Context, Decimal
from typing import Final

LARGEST_EXPONENT: Final = 9_999  # of a number that is written out
EXACT: Final = Context(prec=MAX_PREC)  # that of Python rounds at 28 digits
DAY: Final = (
    r"([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    r"|02-(0[1-9]|1[0-9]|2[0-8]))"
    r"|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
)
CLOCK: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]"
PLAIN_NUMBER: Final = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?"
"""A number as JSON spells it, without an exponent."""
NUMBER: Final = PLAIN_NUMBER + r"([eE][+-]?[0-9]+)?"
PLAIN_TIME: Final = rf"{DAY}T{CLOCK}:[0-5][0-9](\.[0-9]{{1,6}})?(Z|[+-]{CLOCK})"
"""A moment in its most usual spelling. In it, the last six characters hold the offset."""
TIME: Final = (
    rf"(?P<day>{DAY})[Tt ](?P<clock>{CLOCK})"
    r"(:(?P<second>[0-5][0-9])(\.(?P<fraction>[0-9]{1,9}))?)?"
    r"(?P<zone>[Zz]| ?[Uu][Tt][Cc]| ?(?P<sign>[+-])(?P<hours>[01][0-9]|2[0-3])"
    r"(:?(?P<minutes>[0-5][0-9]))?)"
)
# First and end, as text. There is no year 0. In any time zone of a session, Python can hold these.
DAY_BOUNDS: Final = ("0001", "9999-13")
TIME_BOUNDS: Final = ("0001-01-03", "9999-12-30")
_NUMBER: Final = re.compile(NUMBER)
_DAY: Final = re.compile(DAY)
_TIME: Final = re.compile(TIME)


@dataclass(frozen=True)
class Moment:
    """A moment as it was sent: `utc`, cut to microseconds, and its offset, `Z` or `+05:30`.

    `is_cut`: more than six digits of its second were sent.
    """

    utc: datetime
    offset: str
    is_cut: bool


def parse_number(text: str) -> Decimal | None:
    """Return the number that a text spells as JSON does, exactly; None if it spells none."""
    if not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text)
    # 1e999999 is a number, too, and would have a million digits where it is written out.
    return number if abs(number.adjusted()) <= LARGEST_EXPONENT else None


def shortest(number: Decimal) -> Decimal:
    """Return a number without zeros at its end."""
    return number.normalize(EXACT)


def plain_text(number: Decimal) -> str:
    """Return the shortest text of a number without an exponent; that of -0 is 0."""
    return f"{shortest(number) or Decimal(0):f}"


def parse_day(text: str) -> date | None:
    """Return the day that a text spells as YYYY-MM-DD; None if it spells none."""
    if not _DAY.fullmatch(text) or not DAY_BOUNDS[0] <= text < DAY_BOUNDS[1]:
        return None
    return date.fromisoformat(text)


def parse_time(text: str) -> Moment | None:
    """Return the moment that a text spells; None if it spells none, or not in which zone.

    Besides RFC 3339: no seconds, `+0000`, `+00`, ` UTC`, and up to nine digits of a second.
    """
    match = _TIME.fullmatch(text)
    if not match or not TIME_BOUNDS[0] <= text < TIME_BOUNDS[1]:
        return None
    fraction = match["fraction"] or ""
    local = f"{match['day']}T{match['clock']}:{match['second'] or '00'}.{fraction[:6]:0<6}"
    moment = datetime.fromisoformat(local).replace(tzinfo=UTC)
    is_cut = fraction[6:].strip("0") != ""
    sign = match["sign"]
    if not sign:
        return Moment(moment, "Z", is_cut)
    hours = match["hours"]
    minutes = match["minutes"] or "00"
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    if sign == "-":  # the clocks there are behind
        offset = -offset
    return Moment(moment - offset, f"{sign}{hours}:{minutes}", is_cut)
