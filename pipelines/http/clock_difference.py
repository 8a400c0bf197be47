"""How far the service's clock and this machine's are apart, as the Date of an answer shows."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

WARN_SECONDS = 300.0
HALF_SECOND = 0.5  # Date is cut off to whole seconds


@dataclass(frozen=True)
class ClockDifference:
    """Both clocks at one moment; the difference is right within `within_seconds`."""

    theirs: datetime
    ours: datetime
    within_seconds: float

    @property
    def seconds(self) -> float:
        """Seconds that the service is ahead of this machine; negative if it is behind."""
        return (self.theirs - self.ours).total_seconds()

    def exceeds(self, seconds: float) -> bool:
        """Return whether the clocks are certainly further apart than this."""
        return abs(self.seconds) - self.within_seconds > seconds

    def sentence(self) -> str:
        """Return both times for people."""
        side = "ahead of" if self.seconds > 0 else "behind"
        return (
            f"The service's clock says {self.theirs:%Y-%m-%d %H:%M:%S} UTC, this machine's clock "
            f"{self.ours:%Y-%m-%d %H:%M:%S} UTC: the service is {abs(self.seconds):,.0f} s {side} "
            "this machine."
        )


def clock_difference(
    date: str | None, sent_at: float, received_at: float
) -> ClockDifference | None:
    """Return the difference by an answer's Date; None if it has none that can be read.

    The service wrote it between sending and receiving (Unix seconds of our clock).
    """
    try:
        theirs = parsedate_to_datetime(date or "")
        theirs = theirs.astimezone(UTC) if theirs.tzinfo else theirs.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    half_trip = (received_at - sent_at) / 2
    ours = datetime.fromtimestamp(sent_at + half_trip, UTC)
    return ClockDifference(
        theirs + timedelta(seconds=HALF_SECOND), ours, HALF_SECOND + abs(half_trip)
    )
