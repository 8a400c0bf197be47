"""Time, the one seam for it: dates, durations and waiting.

Everything that reads the time or waits takes a `Clock`, so that tests run an hour of rate limit
in a millisecond. Nothing else in pipelines calls `time`, `datetime.now` or `asyncio.sleep`.
In a rehearsal (`PARTNER_SYNC_NOW`) dates are shifted; waits and the life of a token never are.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Clock:
    """What time it is and how to wait.

    `now` is for dates and records (UTC, aware); `monotonic` (seconds) for durations, because the
    wall clock may be set back; `sleep` takes seconds. `shift` is what `now` is ahead of the real
    time: nothing but in a rehearsal.
    """

    now: Callable[[], datetime] = _utc_now
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    shift: timedelta = timedelta()

    def wall(self) -> datetime:
        """Return the real time: for all that is agreed with others, such as Retry-After."""
        return self.now() - self.shift


SYSTEM = Clock()


def beginning(moment: datetime) -> Clock:
    """Return a clock whose dates begin at a moment and go on from there."""
    shift = moment - _utc_now()
    return Clock(now=lambda: _utc_now() + shift, shift=shift)
