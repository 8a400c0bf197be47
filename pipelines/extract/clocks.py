"""Compares the clocks of the service and of this machine over the answers of one scan."""

from dataclasses import dataclass
from datetime import UTC, datetime

from pipelines.archive.lines import Exchange, cached_seconds
from pipelines.rate_limit.headers import read_date

DISAGREE = 5.0  # seconds from which a proof names both clocks


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
        theirs += cached_seconds(exchange.headers)  # a cache keeps the time of the first answer
        self.last = datetime.fromtimestamp(theirs, UTC)
        self.first = self.first or self.last
        # Its fraction of a second is cut off.
        self.differs |= theirs > received + DISAGREE or theirs + 1 < sent - DISAGREE

    def span(self) -> tuple[datetime | None, datetime | None]:
        """Return the service's times of the first and the last answer; none if the clocks agree."""
        return (self.first, self.last) if self.differs else (None, None)
