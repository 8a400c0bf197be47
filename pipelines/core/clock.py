"""Time and waiting. What reads the time or sleeps takes a Clock."""

import asyncio
import time
from datetime import UTC, datetime


class Clock:
    """The clock of this machine; tests pass one that they move."""

    def time(self) -> float:
        """Return the Unix time in seconds; it may be set back."""
        return time.time()

    def utc_now(self) -> datetime:
        """Return the same as an aware datetime in UTC."""
        return datetime.fromtimestamp(self.time(), UTC)

    def monotonic(self) -> float:
        """Return seconds that never run backwards, for durations."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(max(0.0, seconds))
