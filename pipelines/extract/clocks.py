"""Compares the clocks of the service and of this machine over the answers of one scan.

Here: whether they disagree while a list is read. Not here: what a clock that was set back changes
(`pipelines/metadata`).
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from pipelines.archive.lines import Exchange, cached_seconds
from pipelines.rate_limit.headers import read_date

# Seconds from which a proof names both clocks.
MOST_DIFFERENCE = 5.0


@dataclass
class ServiceClock:
    """When the service gave its first and its last answer, by its own clock (`Date`).

    `differs`: at one of them, that was not between sending and receiving.
    """

    first: datetime | None = None
    last: datetime | None = None
    differs: bool = False

    def note(self, exchange: Exchange) -> None:
        """Note what an answer says."""
        sent = exchange.sent_at.timestamp()
        received = exchange.received_at.timestamp()
        theirs = read_date(exchange.headers.get("date", ""), -1.0)
        if theirs < 0:
            return
        # A cache keeps the time of the first answer.
        theirs += cached_seconds(exchange.headers)
        try:
            self.last = datetime.fromtimestamp(theirs, UTC)
        except (ValueError, OverflowError):  # it is in the year 10000
            return
        if self.first is None:
            self.first = self.last
        is_ahead = theirs > received + MOST_DIFFERENCE
        # `Date` has whole seconds: the fraction is cut off.
        is_behind = theirs + 1 < sent - MOST_DIFFERENCE
        if is_ahead or is_behind:
            self.differs = True

    def span(self) -> tuple[datetime | None, datetime | None]:
        """Return the service's times of the first and the last answer; none if the clocks agree."""
        if not self.differs:
            return None, None
        return self.first, self.last
