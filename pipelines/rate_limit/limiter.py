"""Sends each request at the earliest moment at which the service cannot refuse it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass
class Slot:
    """One request's place. The transport sets the times (Unix seconds, of this machine's clock)."""

    number: int
    sent_at: float | None = None  # request headers written
    answered_at: float | None = None  # answer headers received
    status: int | None = None
    headers: Mapping[str, str] | None = None


class RateLimiter:
    """The limiter of one actor, shared with all processes through the metadata database."""

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait for a slot and hold it for one request; the block sends exactly one request.

        Whatever the block left in the slot decides how long it is held: an answer, a refusal, a
        failure. A cancelled wait gives its slot back.
        """
        raise NotImplementedError
        yield Slot(0)

    def block(self, seconds: float) -> None:
        """Let no process of this actor send for so long (Retry-After)."""
        raise NotImplementedError

    def spare(self) -> bool:
        """Return whether latency leaves part of the limit unused, so pages may be prefetched."""
        raise NotImplementedError
