"""The request budget: when the next request may be sent so that the service never answers 429.

The service counts arrivals in a sliding window; we know only when we sent and when we were
answered, and an arrival lies between. So a request holds its slot until one window after its
answer (the strict rule). In one process for now; sharing comes with the ledger.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pipelines.clock import Clock

# Clocks and timers round: a slot is free this much after the window (measured: it matters).
MARGIN = 0.001


class Budget:
    """At most `limit` requests in any `window` seconds, as the service counts them."""

    def __init__(self, clock: Clock, limit: int, window: float) -> None:
        self.clock = clock
        self._limit = limit
        self._window = window
        self._unanswered = 0
        self._answered: deque[float] = deque()
        self._blocked_until = 0.0
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()

    def learn(self, limit: int) -> None:
        """Adopt the limit that the service states to an authenticated caller (Limits, rule 3)."""
        if limit >= 1:
            self._limit = limit

    def block(self, seconds: float) -> None:
        """Send nothing for so long: Retry-After, never earlier (Limits, rule 4)."""
        self._blocked_until = max(self._blocked_until, self.clock.monotonic() + seconds)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Wait, first come first served, until a request may be sent; yield the seconds waited.

        The block ends when the answer's headers are there: the request had arrived by then. A
        request that failed counts from its failure, since nobody knows when it arrived.
        """
        begun = self.clock.monotonic()
        async with self._turn:
            while (delay := self._delay()) != 0:
                await self._wait(delay)
            self._unanswered += 1
        try:
            yield self.clock.monotonic() - begun
        finally:
            self._unanswered -= 1
            self._answered.append(self.clock.monotonic())
            self._freed.set()

    def _delay(self) -> float | None:
        """Return seconds until a slot may be free: 0 now, None when an answer comes."""
        now = self.clock.monotonic()
        if now < self._blocked_until:
            return self._blocked_until - now
        hold = self._window + MARGIN
        while self._answered and self._answered[0] + hold <= now:
            self._answered.popleft()
        if self._unanswered + len(self._answered) < self._limit:
            return 0
        return self._answered[0] + hold - now if self._answered else None

    async def _wait(self, delay: float | None) -> None:
        if delay is None:
            self._freed.clear()
            await self._freed.wait()
        else:
            await self.clock.sleep(delay)
