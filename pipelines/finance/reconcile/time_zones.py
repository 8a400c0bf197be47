"""Finds the time zone in which the days of periods begin, where that is not UTC.

Midnight of the first of a month, sent with an offset east of UTC, is in the month before in UTC.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import duckdb

from pipelines.core.text import counted
from pipelines.finance.reconcile.evidence import Share
from pipelines.finance.reconcile.roles import FieldColumn

SURE: Final = 0.9  # a share of times that shows a time zone
MOST_TIMES: Final = 400  # of a column, the newest
FEWEST_TIMES: Final = 2
# All other names come after these: many zones have the same midnights.
USUAL: Final = (
    "Europe/London", "Europe/Berlin", "Europe/Athens", "America/New_York", "America/Chicago",
    "America/Denver", "America/Los_Angeles", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Dubai",
    "Asia/Singapore", "Asia/Tokyo", "Australia/Sydney", "Pacific/Auckland",
)  # fmt: skip
MIDNIGHT: Final = time()
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# A date that was sent beside times has no offset: it is that day in every time zone.
TIMES: Final = """
SELECT DISTINCT epoch_us({column.value}) AS moment
FROM {column.source}
WHERE {column.offset} IS NOT NULL
    AND {column.value} BETWEEN TIMESTAMPTZ '1971-01-01 00:00:00+00'
        AND TIMESTAMPTZ '2199-01-01 00:00:00+00'
ORDER BY moment DESC
LIMIT {most}
"""


class TimeZones(NamedTuple):
    """Time zones in which days of periods begin, the one to use first, and why."""

    names: tuple[str, ...] = ()
    evidence: str = ""


def find_time_zones(
    db: duckdb.DuckDBPyConnection, periods: Iterable[FieldColumn], current: str
) -> TimeZones:
    """Return the time zones in which nearly all times of some columns are midnight.

    None where that holds for the `current` one, or for none. Columns with other times, such as when
    something was used, say nothing.
    """
    names: list[str] = []
    times: list[datetime] = []
    for column in periods:
        of_column = _times(db, column)
        if len(of_column) < FEWEST_TIMES:
            continue
        if _midnights(of_column, current).value >= SURE:
            return TimeZones()
        fitting = _fitting(of_column)
        if fitting:
            names = [name for name in fitting if name in names or not times]
            times += of_column
    if not names:
        return TimeZones()
    evidence = (
        f"{_midnights(times, names[0])} times of periods are midnight there, and "
        f"{_midnights(times, current)} in {current}."
    )
    if len(names) > 1:
        same = counted(len(names) - 1, "other time zone")
        evidence += f" So they are in {same}, such as {names[1]}. Correct it if yours is another."
    return TimeZones(tuple(names), evidence)


def _times(db: duckdb.DuckDBPyConnection, column: FieldColumn) -> list[datetime]:
    """Return the newest times of a column, each once."""
    if not column.is_time:
        return []
    moments = db.execute(TIMES.format(column=column, most=MOST_TIMES)).fetchall()
    return [EPOCH + timedelta(microseconds=microseconds) for (microseconds,) in moments]


def _fitting(times: Sequence[datetime]) -> list[str]:
    """Return the names of the time zones in which nearly all times are midnight."""
    others = sorted(name for name in available_timezones() if "/" in name)
    tried = dict.fromkeys((*USUAL, *others))
    # A few times rule out most zones.
    possible = [name for name in tried if _midnights(times[:10], name).part]
    return [name for name in possible if _midnights(times, name).value >= SURE]


def _midnights(times: Sequence[datetime], name: str) -> Share:
    """Return how many times are midnight in a time zone."""
    zone = ZoneInfo(name)
    return Share.of(moment.astimezone(zone).time() == MIDNIGHT for moment in times)
