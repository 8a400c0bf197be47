"""Sends each request at the earliest moment at which the service cannot refuse it."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from pipelines.core.clock import Clock
from pipelines.core.errors import Postponed, StorageFailed
from pipelines.metadata.engine import Metadata
from pipelines.rate_limit.policy import LEAD
from pipelines.rate_limit.shared import Ended, LimitOptions, SharedSlots, forget_block
from pipelines.rate_limit.steps import ClockSteps

__all__ = ["LimitOptions", "RateLimiter", "Slot", "forget_block"]

LONGEST_SLEEP = 0.5  # seconds until another look: a process may have died, a block be forgotten
PREFETCH_MARGIN = 0.1  # requests: a round trip so short is filled by one request after the other


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

    def __init__(
        self, metadata: Metadata, actor: str, clock: Clock, options: LimitOptions | None = None
    ) -> None:
        self._options = options or LimitOptions()
        self._shared = SharedSlots(metadata, actor, clock, self._options)
        self._actor = actor
        self._clock = clock
        self._turn = asyncio.Lock()
        self._active = 0  # requests that wait or are under way
        self._steps = ClockSteps()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait for a slot and hold it for one request; the block sends exactly one request.

        Whatever the block left in the slot decides how long it is held: an answer, a refusal, a
        failure. A cancelled wait gives its slot back. After a 429 nobody sends before its
        `Retry-After`, or for one window if it has none. Raises StorageFailed, and Postponed if the
        service asks to wait longer than `longest_wait_seconds`.
        """
        self._active += 1
        try:
            async with self._turn:
                slot = Slot(await self._take())
            self._local_time()
            taken, steps = self._clock.monotonic(), self._steps.count
            try:
                yield slot
            finally:
                self._shared.end(self._ended(slot, taken, steps))
        finally:
            self._active -= 1

    def block(self, seconds: float) -> None:
        """Let no process of this actor send for so long (Retry-After), at most 7 days."""
        self._shared.block(seconds)

    def spare(self) -> bool:
        """Return whether latency leaves part of the limit unused, so pages may be prefetched."""
        long = self._shared.round_trips.long()
        if long is None:
            return self._active < 1
        filling = self._shared.limit / self._options.window_seconds * long
        return self._active < math.ceil(filling - PREFETCH_MARGIN) + 1

    async def _take(self) -> int:
        """Return the number of a slot at the moment at which its request may be sent."""
        number = 0
        try:
            while True:
                turn = self._shared.look(number)
                number = turn.number
                self._check_wait(turn.blocked_seconds)
                if not turn.is_taken:
                    await self._sleep_until(turn.due - LEAD)
                elif not await self._sleep_until(turn.due) or self._shared.confirm(number):
                    return number
        except BaseException:
            with suppress(StorageFailed):
                self._shared.withdraw(number)
            raise

    async def _sleep_until(self, moment: float) -> bool:
        """Sleep until a monotonic second; return whether there was anything to wait for."""
        remaining = min(moment - self._clock.monotonic(), LONGEST_SLEEP)
        if remaining <= 0:
            return False
        await self._clock.sleep(remaining)
        return True

    def _check_wait(self, blocked_seconds: float) -> None:
        if blocked_seconds > self._options.longest_wait_seconds:
            until = datetime.fromtimestamp(self._clock.time() + blocked_seconds, UTC)
            raise Postponed(
                f"The service asks {self._actor} to send no request before {until:%Y-%m-%d %H:%M} "
                "UTC. Nothing more is read until then.",
                until,
            )

    def _local_time(self) -> tuple[float, float]:
        """Return this machine's Unix time and the monotonic time; notice a clock that was set."""
        before, time = self._clock.monotonic(), self._clock.time()
        after = self._clock.monotonic()
        self._steps.observe(before, time, after)
        return time, after

    def _ended(self, slot: Slot, taken: float, steps: int) -> Ended:
        """Return when a request was sent and answered, in monotonic seconds."""
        time, monotonic = self._local_time()
        if self._steps.count != steps:  # the slot's times say nothing: it was answered just now
            answered = None if slot.answered_at is None else monotonic
            return Ended(slot.number, monotonic, None, answered, slot.status, slot.headers)
        sent, answered = (
            None if at is None else min(max(monotonic - (time - at), taken), monotonic)
            for at in (slot.sent_at, slot.answered_at)
        )
        return Ended(slot.number, monotonic, sent, answered, slot.status, slot.headers)
