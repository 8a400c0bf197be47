"""How far the service's clock is from ours, as far as an answer can tell."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

TOLERATED = 2.0  # seconds
# Date has whole seconds, cut off.
HALF = 0.5


@dataclass(frozen=True)
class Skew:
    """Seconds that the service is ahead of us (behind: negative), right within `within` seconds."""

    seconds: float
    within: float

    @property
    def tolerable(self) -> bool:
        """Whether the clocks may agree to two seconds."""
        return abs(self.seconds) - self.within <= TOLERATED

    def __str__(self) -> str:
        side = "ahead of" if self.seconds > 0 else "behind"
        return (
            f"the service is {abs(self.seconds):.1f} s {side} this machine (± {self.within:.1f} s)"
        )


def measured(said: str | None, sent_at: datetime, answered_at: datetime) -> Skew | None:
    """Return the skew by an answer's Date; None where it has none that can be read.

    The service wrote it some time between sending and answer: the round trip is the uncertainty.
    """
    try:
        theirs = parsedate_to_datetime(said or "")
    except (ValueError, OverflowError):
        return None
    theirs = theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)
    trip = answered_at - sent_at
    ours = sent_at + trip / 2
    seconds = (theirs + timedelta(seconds=HALF) - ours).total_seconds()
    return Skew(seconds, HALF + trip.total_seconds() / 2)
