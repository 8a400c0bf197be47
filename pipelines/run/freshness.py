"""How fresh the published file is: how old the newest proven reading of each list in it is.

Read from the file that analysts open, so that the replay of an old day makes nothing look fresh.
The alert `stale_data` judges the same by the ledger, without a file. Not here: who is told.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from pipelines.errors import NothingPublished
from pipelines.run.session import Session
from pipelines.state.proof import Grade
from pipelines.streams import known
from pipelines.warehouse import published
from pipelines.warehouse.published import Published

# Of a list of which no reading is proven, the first: the alert takes the same.
NEWEST = """
SELECT connection, stream, arg_max(day, worth), arg_max(ended_at, worth), arg_max(rows, number)
FROM (SELECT *, if(list_contains($marked, grade), -number, number) AS worth FROM meta.folds)
GROUP BY ALL
"""
MARKED = [grade.value for grade in Grade if grade.marked]
Row = tuple[date, datetime, int]


@dataclass(frozen=True)
class Freshness:
    """One list in the published file; `row` is None where it is not in it.

    `after` is for how long its rows are fresh.
    """

    connection: str
    stream: str
    now: datetime
    after: timedelta
    row: Row | None = None

    @property
    def day(self) -> date | None:
        """The day of its newest proven reading in the file."""
        return self.row[0] if self.row else None

    @property
    def rows(self) -> int | None:
        """How many rows it has in the file."""
        return self.row[2] if self.row else None

    @property
    def hours(self) -> float | None:
        """How many hours ago that reading ended."""
        return round((self.now - self.row[1]).total_seconds() / 3600, 2) if self.row else None

    @property
    def until(self) -> datetime | None:
        """Until when it is fresh."""
        return self.row[1] + self.after if self.row else None

    @property
    def stale(self) -> bool:
        """Whether analysts see older rows than they should, or none."""
        return self.until is None or self.until < self.now


def freshness(session: Session) -> tuple[Freshness, ...]:
    """Return how fresh each list of each connection is in the file that analysts open."""
    own, there = session.settings, _published(session)
    now, after = session.clock.now(), timedelta(hours=own.stale_after)
    return tuple(
        Freshness(name, stream.name, now, after, there.get((name, stream.name)))
        for name, of in own.connections().items()
        for stream in known(own, of.surface)
    )


def _published(session: Session) -> Mapping[tuple[str, str], Row]:
    with suppress(NothingPublished):
        return published.kept(session.settings.place, _newest)
    return {}


def _newest(source: Published) -> Mapping[tuple[str, str], Row]:
    found = source.rows(("meta", "folds"), NEWEST, {"marked": MARKED})
    return {(connection, stream): (day, at, rows) for connection, stream, day, at, rows in found}
