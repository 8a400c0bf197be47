"""How fresh the published file is: when each list in it was read to its end, and since when stale.

Read from `meta.freshness` of the file that analysts open, so that the replay of an old day makes
nothing look fresh. Not here: who is told.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from pipelines.errors import NothingPublished
from pipelines.run.session import Session
from pipelines.streams import known
from pipelines.warehouse import published

NEWEST = "SELECT connection, stream, day, ended_at, rows FROM meta.freshness"
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
        """The day of its newest reading in the file."""
        return self.row[0] if self.row else None

    @property
    def rows(self) -> int | None:
        """How many rows it has in the file."""
        return self.row[2] if self.row else None

    @property
    def hours(self) -> float | None:
        """How many hours ago it was read to its end."""
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
    try:
        with published.opened(session.settings.place.link) as source:
            found = source.database.execute(NEWEST).fetchall()
    except NothingPublished:
        return {}
    return {(connection, stream): (day, at, rows) for connection, stream, day, at, rows in found}
