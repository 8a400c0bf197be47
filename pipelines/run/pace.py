"""How fast lists are read, and when they will be read: what a progress line says.

An estimate for people; nothing is decided by it.
"""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil

from pipelines.clock import Clock
from pipelines.settings import Connection, Settings
from pipelines.warehouse.scan import Progress

RECENT = 30.0  # seconds over which requests are counted
SLACK = 1.1  # repairs and waits that an even pace does not show


@dataclass(frozen=True)
class Outlook:
    """Requests a second of late, and between which times the last list will be read.

    `earliest` and `latest` are None where a list was never read to its end before, and where one is
    counted. `counted` are the lists that are counted now, in words.
    """

    rate: float
    allowance: float
    earliest: datetime | None
    latest: datetime | None
    counted: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The same for people, times in UTC."""
        return "; ".join((self._pace(), *self.counted))

    def _pace(self) -> str:
        pace = f"{self.rate:.1f} of {self.allowance:g} requests/s"
        if self.earliest == self.latest and self.latest is not None:
            return pace
        if self.earliest is None or self.latest is None:
            return f"{pace}, its end is not known yet"
        return f"{pace}, done between {self.earliest:%H:%M:%S} and {self.latest:%H:%M:%S} UTC"


def allowed(settings: Settings, connection: Connection) -> float:
    """Return the requests a second that a connection may send, as far as settings tell."""
    most = min(settings.rate, connection.allowance or settings.rate)
    return most / max(settings.window, 0.001)


@dataclass
class Pace:
    """Counts pages as they come in; `allowance` in requests a second."""

    clock: Clock
    allowance: float
    _lists: dict[tuple[str, str], Progress] = field(default_factory=dict)
    _pages: deque[float] = field(default_factory=deque)

    def count(self, news: Progress) -> Outlook:
        """Take in one page; return what can be said now."""
        self._lists[news.connection, news.stream] = news
        now = self.clock.monotonic()
        self._pages += [now] if news.pages else []
        while self._pages and self._pages[0] < now - RECENT:
            self._pages.popleft()
        return self._outlook()

    def _outlook(self) -> Outlook:
        span = self._pages[-1] - self._pages[0] if self._pages else 0.0
        rate = (len(self._pages) - 1) / span if span else 0.0
        reading = [each for each in self._lists.values() if not each.done]
        if any(each.expected is None or not each.pages or each.counting for each in reading):
            lines = [counting_line(each) for each in reading if each.counting]
            return Outlook(rate, self.allowance, None, None, tuple(lines))
        pages = sum(map(_left, reading))
        now = self.clock.now()
        earliest = now + timedelta(seconds=pages / self.allowance)
        slower = min(rate or self.allowance, self.allowance)
        return Outlook(
            rate, self.allowance, earliest, now + timedelta(seconds=SLACK * pages / slower)
        )


def counting_line(news: Progress) -> str:
    """Return how far the count of a list is; empty where it is not counted."""
    return f"{news.stream}: {news.counting.words}" if news.counting else ""


def _left(news: Progress) -> int:
    """Return the requests that a list still needs: its pages to come, and the head once more."""
    rows_a_page = max(1.0, news.rows / news.pages)
    return 1 + ceil(max(0, (news.expected or 0) - news.rows) / rows_a_page)
