"""The clock that the service takes all its times from; tests pass one that they move by hand."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of time."""

    def time(self) -> float:
        """Return the Unix time in seconds; it may be set back."""

    def monotonic(self) -> float:
        """Return seconds that never run backwards, for windows."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The clock of this machine."""

    def time(self) -> float:
        """Return the Unix time in seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


SYSTEM = SystemClock()


def utc_now(clock: Clock) -> datetime:
    """Return the time of a clock as an aware datetime in UTC."""
    return datetime.fromtimestamp(clock.time(), UTC)
