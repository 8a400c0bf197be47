"""Time in the data: the day the sizes are counted at, the days since, and the month of a record.

Here: the epoch, the growth of a list per day, and on which days a billing group is restated.
Not here: the clock of tokens and rate limits, which is the real one.
"""

import calendar
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(2026, 11, 1, tzinfo=UTC)
LAST_YEAR = 2126  # far enough, and far from where dates end
RESTATEMENT_CYCLE = 100  # days: each group has one day in it, so about 1 % are restated a day
RESTATEMENT_STEP = 37  # coprime to the cycle, so that neighbouring days restate unrelated groups
DAILY_GROWTH = 200  # one new row a day for so many rows: 0.5 %


class OutsideDataError(ValueError):
    """The data has no state at this time."""


def days_since_epoch(now: datetime) -> int:
    """Count the whole days from the epoch to ``now``.

    Raises:
        OutsideDataError: ``now`` is earlier than the epoch, or later than the last year.
    """
    if now < EPOCH or now.year > LAST_YEAR:
        shown = f"{EPOCH:%Y-%m-%dT%H:%M:%SZ} to the year {LAST_YEAR}"
        raise OutsideDataError(f"there is data from {shown}: {now.isoformat()} is outside")
    return (now - EPOCH).days


def grown_on(day: int) -> date:
    """Give the calendar day that the rows of growth day ``day`` (1 is the first) belong to."""
    return EPOCH.date() + timedelta(days=day - 1)


def daily_growth(size: int) -> int:
    """Give the rows a day adds to ``size`` rows: 0.5 %, at least one, none to an empty list."""
    return max(1, round(size / DAILY_GROWTH)) if size else 0


@dataclass(frozen=True)
class Month:
    """A calendar month as the texts that records show."""

    prefix: str
    first: str
    last: str
    due: str


@lru_cache(maxsize=1024)
def month_of(day: date) -> Month:
    """Give the month that contains ``day``; payment is due at the end of the following month."""
    last = day.replace(day=calendar.monthrange(day.year, day.month)[1])
    following = last + timedelta(days=1)
    due = following.replace(day=calendar.monthrange(following.year, following.month)[1])
    return Month(f"{day:%Y-%m}-", f"{day:%Y-%m}-01", last.isoformat(), due.isoformat())


def months_before_epoch(count: int) -> date:
    """Give the first day of the month ``count`` months before the epoch's."""
    months = EPOCH.year * 12 + EPOCH.month - 1 - count
    return date(months // 12, months % 12 + 1, 1)


@dataclass(frozen=True)
class Restatements:
    """How often a group has been restated, and on which growth day last (0: never)."""

    count: int
    last_day: int


def restatements(chance: int, born: int, today: int) -> Restatements:
    """Tell a group's restatements: the days d after its birth with (chance + 37 d) % 100 == 0."""
    inverse = pow(RESTATEMENT_STEP, -1, RESTATEMENT_CYCLE)
    phase = -chance * inverse % RESTATEMENT_CYCLE
    count = (today - phase) // RESTATEMENT_CYCLE - (born - phase) // RESTATEMENT_CYCLE
    last_day = today - (today - phase) % RESTATEMENT_CYCLE if count else 0
    return Restatements(count, last_day)
