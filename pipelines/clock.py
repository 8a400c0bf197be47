"""Time, the one seam for it: dates, durations and waiting.

Everything that reads the time or waits takes a `Clock`, so that tests run an hour of rate limit
in a millisecond. Nothing else in pipelines calls `time`, `datetime.now` or `asyncio.sleep`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Clock:
    """What time it is and how to wait.

    `now` is for dates and records (UTC, aware); `monotonic` (seconds) for durations, because the
    wall clock may be set back; `sleep` takes seconds.
    """

    now: Callable[[], datetime] = _utc_now
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


SYSTEM = Clock()
