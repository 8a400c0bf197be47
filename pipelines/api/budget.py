"""The request budget: when the next request may be sent so that the service never answers 429.

The service counts arrivals in a sliding window; we know only when we sent and when we were
answered, and an arrival lies between. So a request holds its slot until one window after its
answer (the strict rule), less what the path proves (the tight rule, `path`). One budget for all
processes that use an actor, through the state database.

Here is the waiting; what the shared rows allow is decided in `rule`. Rows in a file are read on the
event loop (0.1 ms); those of a server by one thread beside it, so that a slow network or a server
that is away holds up nothing but the next slot.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import cached_property, partial

from pipelines.api import retry
from pipelines.api.rule import Rule, Wait
from pipelines.api.terms import ALONE, Said, Seat, Terms
from pipelines.clock import Clock
from pipelines.errors import StorageFailed
from pipelines.state.desk import Busy
from pipelines.state.slots import Slots, Taken

WORTH_TELLING = 1.0  # seconds
LAST_WORDS = 5.0  # seconds in which the end waits for other processes
SIGHTINGS = 3  # answers that count others' requests, before it is said
SPARE = 0.1  # of a request's share of the window: a path so short is filled by one chain


class Budget:
    """The budget of one actor, as one process uses it; `key` names the actor at the first slot."""

    def __init__(
        self, clock: Clock, terms: Terms, seat: Seat = ALONE, key: Callable[[], str] = str
    ) -> None:
        self.clock = clock
        self._terms = terms
        self._seat = seat
        self._key = key
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()
        self._waiting = 0
        self._travelling = 0
        self._said: Said | None = None
        self._measured = False
        self._foreign_told = False
        self._closed = False
        self._news: list[Callable[[], None]] = []  # for the state database, in order
        self._telling: asyncio.Task[None] | None = None

    @cached_property
    def _slots(self) -> Slots:
        return Slots(self._seat.ledger, self._key())

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "request-budget")

    @cached_property
    def _rule(self) -> Rule:
        return Rule(self.clock, self._terms, self._seat.lane, self._slots)

    def learn(self, limit: int) -> None:
        """Adopt the limit that the service states to an authenticated caller (Limits, rule 3)."""
        if limit >= 1:
            self._tell(partial(self._rule.learned, limit))

    def block(self, seconds: float) -> None:
        """Send nothing for so long: Retry-After, never earlier (Limits, rule 4)."""
        self._tell(partial(self._rule.blocked, self.clock.monotonic() + seconds))

    def hear(self, said: Said) -> None:
        """Note what an answer says; to be called before its slot is given back, without a pause."""
        self._said = said

    def ahead(self) -> bool:
        """Say whether latency leaves allowance unused: one more request may be on its way."""
        if not self._measured or not self._terms.window:
            return self._travelling + self._waiting < 1
        per_second = self._rule.limit / self._terms.window
        filling = math.ceil(per_second * self._rule.path.typical - SPARE)
        return self._travelling + self._waiting < filling + 1

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Wait by turns until a request may be sent; yield the seconds waited.

        Raises Postponed where the service asks for a wait that is longer than a run's.

        The block ends when the answer's headers are there: the request had arrived by then. A
        request that failed counts from its failure, since nobody knows when it arrived.
        """
        begun = self.clock.monotonic()
        self._waiting += 1
        try:
            async with self._turn:
                taken = await self._taken(begun)
        finally:
            self._waiting -= 1
            if not self._waiting and self._rule.queued:
                self._tell(self._rule.left)
        self._travelling += 1
        try:
            yield self.clock.monotonic() - begun
        finally:
            self._travelling -= 1
            said, self._said = self._said, None
            self._tell(partial(self._rule.answered, taken, self.clock.monotonic(), said))
            self._freed.set()
            self._measured |= said is not None
            self._tell_of_others()

    def close(self) -> None:
        """Leave; what was sent still counts until its time is over."""
        self._closed = True
        if "_slots" in vars(self):
            if self._telling is not None:
                self._telling.cancel()
            self._slots.desk.hurry(LAST_WORDS)
            if self._slots.desk.remote:
                self._thread.shutdown()
            self._told()
            self._slots.close()

    async def _taken(self, begun: float) -> Taken:
        told: tuple[datetime | None, str] | None = None
        try:
            while isinstance(found := await self._look(), Wait):
                if found.blocked > retry.LONGEST_WAIT:
                    raise retry.postponed(f"{self._key()}: ", found.blocked, self.clock.wall())
                told = self._worth_telling(found, begun, told)
                await self._wait(found.delay)
        finally:
            if told:
                self._seat.waiting(None, "")
        return found

    async def _look(self) -> Taken | Wait:
        if not self._slots.desk.remote:
            return self._looked()
        looking = asyncio.get_running_loop().run_in_executor(self._thread, self._looked)
        try:
            return await asyncio.shield(looking)
        except asyncio.CancelledError:
            looking.add_done_callback(self._give_back)
            raise

    def _give_back(self, looking: asyncio.Future[Taken | Wait]) -> None:
        """Give back what a thread took for a request that was given up meanwhile."""
        if looking.cancelled() or looking.exception() or self._closed:
            return
        if isinstance(taken := looking.result(), Taken):
            self._tell(partial(self._rule.answered, taken, self.clock.monotonic(), None))
            self._freed.set()
        if not self._waiting and self._rule.queued:
            self._tell(self._rule.left)

    def _looked(self) -> Taken | Wait:
        try:
            with self._slots.transaction():
                told = self._pass_on()
                found = self._rule.look(more=self._waiting > 1)
        except Busy:
            return Wait(self._slots.desk.poll, "another process")
        del self._news[:told]
        return found

    async def _wait(self, delay: float | None) -> None:
        if delay is None:
            self._freed.clear()
            await self._freed.wait()
        else:
            await self.clock.sleep(delay)

    def _worth_telling(
        self, wait: Wait, begun: float, told: tuple[datetime | None, str] | None
    ) -> tuple[datetime | None, str] | None:
        """Tell of a wait of more than a second, once; return what was told last."""
        delay = wait.delay or 0.0
        if max(delay, self.clock.monotonic() - begun) <= WORTH_TELLING or not wait.why:
            return told
        until = self.clock.wall() + timedelta(seconds=delay) if delay > WORTH_TELLING else None
        if told is None or (until, wait.why) != told:
            self._seat.waiting(until, wait.why)
        return until, wait.why

    def _tell_of_others(self) -> None:
        if self._rule.sightings < SIGHTINGS or self._foreign_told:
            return
        self._foreign_told = True
        ours, others = self._rule.limit, max(1, self._rule.reserve)
        window = f"{self._terms.window:g} s" if self._terms.window != 1 else "second"
        self._seat.foreign(
            f"another client uses the same account as {self._key()}: the service counts {others} "
            f"requests per {window} that partner-sync did not send. No row is lost. This sync "
            f"leaves room for them: it sends {ours} requests per {window} and takes longer. Give "
            f"each client credentials of its own, or set allowance = {ours} to share for good. (A "
            f"setting `window` that is shorter than the service's looks the same.)"
        )

    def _tell(self, news: Callable[[], None]) -> None:
        """Write to the state database: at once or, where another process writes, soon."""
        self._news.append(news)
        if not self._slots.desk.remote and self._told():
            return
        if self._telling is None or self._telling.done():
            self._telling = asyncio.ensure_future(self._tell_later())

    async def _tell_later(self) -> None:
        with suppress(StorageFailed):  # who asks for a slot next hears of it
            while self._news:
                if self._slots.desk.remote:
                    told = await asyncio.get_running_loop().run_in_executor(
                        self._thread, self._told
                    )
                else:
                    told = self._told()
                if not told:
                    await self.clock.sleep(self._slots.desk.poll)

    def _told(self) -> bool:
        try:
            with self._slots.transaction():
                told = self._pass_on()
        except Busy:
            return False
        del self._news[:told]
        return True

    def _pass_on(self) -> int:
        """Write the news that there are now; return how many."""
        news = list(self._news)
        for each in news:
            each()
        return len(news)
