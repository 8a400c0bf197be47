"""Sends each request at the earliest moment at which the service should not refuse it.

The processes of an actor share its slots through the metadata database. Each access is one short
transaction. Times are seconds of the clock that the processes share (`Metadata.now`).
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus

from sqlalchemy import insert

from pipelines.core.clock import Clock
from pipelines.core.errors import Postponed, StorageFailed
from pipelines.metadata.engine import Metadata, this_process
from pipelines.metadata.tables import RateLimitActor
from pipelines.rate_limit import actor_state
from pipelines.rate_limit.headers import HIGHEST_LIMIT, read_rate_headers
from pipelines.rate_limit.pause import MustWait, pause_of
from pipelines.rate_limit.policy import (
    CAUTION_SPACING,
    LEAD,
    MARGIN,
    SHARED_SPACING,
    Share,
    count_ours,
    credit_of,
    next_slot,
)
from pipelines.rate_limit.rows import (
    ACTORS,
    ADD,
    COUNT,
    DELETE,
    HELD,
    KNOWN,
    LEARNED,
    SELECT,
    UPDATE,
    Execute,
    LimitOptions,
    Slot,
    SlotReader,
)

__all__ = ["LimitOptions", "RateLimiter", "Slot", "forget_block"]

LONGEST_SLEEP = 0.5  # seconds until another look: a process may have died, a block be forgotten
NOTED_SECONDS = 30.0  # of a wait, between two messages
LAST_LOOK = 0.005  # seconds before its moment at which a request looks once more
HEAD_START = 0.002  # for the request before: a look stops the event loop, which has to write it
# A readable answer needs so many turns of the event loop until its headers are known.
TURNS = 3
KEPT_SECONDS = 2.0  # for which a free slot may explain what an answer counts
# If an answer says that so many requests remain, so many of the next seconds need no slot.
AMPLE = 10_000
COVERED = 99
COVERED_SECONDS = 0.25
REMEMBERED_TRIPS = 300  # round trips: one minute at 5 requests per second
PREFETCH_MARGIN = 0.1  # requests: a round trip so short is filled by one request after the other
logger = logging.getLogger(__name__)


class RateLimiter:
    """The limiter of one actor, shared with all processes through the metadata database."""

    def __init__(
        self, metadata: Metadata, actor: str, clock: Clock, options: LimitOptions | None = None
    ) -> None:
        self._metadata = metadata
        self._actor = actor
        self._clock = clock
        self._options = options or LimitOptions()
        self._owner = this_process()
        self._clock_name = metadata.clock_name
        self._pause = pause_of(actor)
        self._turn = asyncio.Lock()
        self._active = 0  # requests that wait or are under way
        self._limit = self._options.limit  # ours, per window, as of the last look
        self._stated_limit: int | None = None  # by an answer to this process
        self._trips: deque[float] = deque(maxlen=REMEMBERED_TRIPS)
        self._ended: list[Slot] = []  # not yet written
        self._may_cover = not self._options.max_requests_per_window
        # Requests that need no slot.
        self._covered = 0
        self._covered_until = -math.inf

    @asynccontextmanager
    async def hold(self, slot: Slot) -> AsyncIterator[None]:
        """Wait until one request may be sent; its slot, if it has one, is held for the block.

        That ends when the headers of its answer are there. A cancelled wait gives its slot back.
        After a 429 nobody sends for one window; a longer pause is up to `block`. Raises
        StorageFailed, and Postponed.
        """
        self._active += 1
        try:
            async with self._turn:
                self._covered -= 1
                is_over = self._clock.monotonic() > self._covered_until
                if self._covered < 0 or is_over or self._is_paused():
                    await self._clock.sleep(HEAD_START)
                    await self._take(slot)
            try:
                yield
            finally:
                self._end(slot)
        finally:
            self._active -= 1

    def _end(self, slot: Slot) -> None:
        """Write how long a request holds its slot; where room is ample, let others go without."""
        slot.ended = self._clock.monotonic()
        self._trips.extend([] if slot.trip is None else [slot.trip])
        said = read_rate_headers(slot.status, slot.headers, self._stated_limit)
        remaining = said.remaining if said and slot.status == HTTPStatus.OK else None
        self._may_cover &= slot.status != HTTPStatus.TOO_MANY_REQUESTS  # headers can be wrong
        is_ample = self._may_cover and (remaining or 0) >= AMPLE
        if slot.number or not is_ample:
            self._covered = 0
            self._covered_until = slot.ended + COVERED_SECONDS
            self._ended.append(slot)
            # It writes what ended; the next one tries again, and raises.
            with suppress(StorageFailed), self._transaction() as (_execute, known, now):
                self._covered = COVERED * (is_ample and known.blocked_until <= now)

    async def wait_for_pause(self) -> None:
        """Wait while nobody may send (Retry-After), without a slot. Raises as `hold` does."""
        await self._take(None)

    def hear(self, seconds: float) -> None:
        """Let nobody in this process send for so long from now; `block` tells the others."""
        self._pause.hear(self._clock.monotonic() + min(seconds, actor_state.LONGEST_BLOCK))

    def hear_refusal(self, seconds: float) -> None:
        """Do so after a 429: for one window at least."""
        self.hear(max(seconds, self._options.window_seconds + MARGIN))

    def block(self, seconds: float) -> None:
        """Let no process of this actor send for so long (Retry-After), at most 7 days."""
        self._covered = 0
        self.hear(seconds)
        with self._transaction():
            pass  # it writes what was heard

    async def check_leaving(self) -> None:
        """Raise MustWait if a request that is about to be written has to wait for a pause.

        That is the last look, at the moment itself. Answers that have reached this machine are
        read before.
        """
        for _turn in range(TURNS):
            await asyncio.sleep(0)
        if self._is_paused():
            raise MustWait("A pause began before the request left.")

    def _is_paused(self) -> bool:
        return self._clock.monotonic() < self._pause.until

    def spare(self) -> bool:
        """Return whether latency leaves part of the limit unused, so pages may be prefetched."""
        trips = sorted(self._trips) or [0.0]
        filling = trips[9 * len(trips) // 10] * self._limit / self._options.window_seconds
        return self._active < math.ceil(filling - PREFETCH_MARGIN) + 1

    async def _take(self, slot: Slot | None) -> None:
        """Wait until the request may be sent; look once more `LAST_LOOK` seconds before."""
        try:
            await self._wait(slot)
            while self._is_paused():  # heard within these seconds
                await self._wait(slot)
        except BaseException:
            with suppress(StorageFailed), self._transaction() as (execute, _known, _now):
                execute(UPDATE, {"held_until": 0.0, "of": slot and slot.number})
            raise

    async def _wait(self, slot: Slot | None) -> None:
        noted = -math.inf
        while (wait := self._look(slot) - (now := self._clock.monotonic())) > LAST_LOOK:
            if min(wait, now - noted) > NOTED_SECONDS:
                noted = now
                logger.info("Pause, or no room in the limit: requests go on in %.0f s.", wait)
            before = LEAD - MARGIN if wait > LEAD else LAST_LOOK
            await self._clock.sleep(min(wait - before, LONGEST_SLEEP))
        await self._clock.sleep(wait)

    def _look(self, mine: Slot | None) -> float:
        """Return when the request may be sent, in monotonic seconds; queue until then.

        Within `LEAD` its slot is taken; without one, only a pause counts. Raises Postponed.
        """
        with self._transaction() as (execute, known, now):
            ahead = now - self._clock.monotonic()
            due = self._queue(execute, known, mine, now) if mine else known.blocked_until
        if known.blocked_until - now > actor_state.LONGEST_WAIT:
            until = datetime.fromtimestamp(self._clock.time() + known.blocked_until - now, UTC)
            raise Postponed(
                "The service asks for a longer pause than a run may take. No request is sent "
                f"before {until:%Y-%m-%d %H:%M} UTC.",
                f"Run `partner-sync sync` after {until:%Y-%m-%d %H:%M} UTC to resume.",
            )
        return due - ahead

    def _queue(self, execute: Execute, known: RateLimitActor, mine: Slot, now: float) -> float:
        slots = self._reader(execute, now).read(HELD)
        queued = {slot.number: slot.sent_at for slot in slots if slot.held_until is None}
        due = queued.get(mine.number)
        if mine.number not in queued:  # none yet, or it was released
            execute(DELETE, {"of": self._actor, "before": now - KEPT_SECONDS})
            mine.number = execute(ADD, {"actor": self._actor, "owner": self._owner}).one()[0]
            # Who has sent more of late gives way to as many others.
            sent = execute(COUNT, {"of": self._actor, "by": self._owner}).scalar_one()
            mine.place = mine.number + sent
        if due is None or known.blocked_until > now:
            share = self._share(known, now)
            due = next_slot(slots, (mine.place, mine.number), share, now)
            due = max(due, known.blocked_until)
            taken = due if due <= now + LEAD else None
            execute(UPDATE, {"sent_at": taken, "place": mine.place, "of": mine.number})
        return due

    @contextmanager
    def _transaction(self) -> Iterator[tuple[Execute, RateLimitActor, float]]:
        """Yield how to execute, what is known of the actor, the time; write what ended before."""
        with self._metadata.engine.begin() as connection:
            execute = connection.execute
            before = self._clock.monotonic()
            now = self._metadata.now(connection, self._clock)
            unix_now = self._clock.time()
            ahead = now - self._clock.monotonic()
            heard = self._pause.heard
            found = execute(KNOWN, {"of": self._actor}).mappings().one_or_none()
            known = RateLimitActor(**found or {"actor": self._actor})
            if known.clock != self._clock_name:
                actor_state.change_clock(known, self._clock_name, now, unix_now)
            if heard > before:
                actor_state.block(known, heard - before, now, unix_now)
            for slot in self._ended:  # `before` is early: a slot is held too long, never too short
                self._learn(execute, known, slot, now - (before - slot.ended), now)
            yield execute, known, now
            learned = {name: getattr(known, name) for name in ACTORS.columns.keys()}  # noqa: SIM118
            if found is None:
                execute(insert(ACTORS), learned)
            elif learned != found:
                execute(LEARNED, {**learned, "of": self._actor})
        self._ended.clear()
        self._pause.agree(known.blocked_until - ahead, heard)

    def _share(self, known: RateLimitActor, now: float) -> Share:
        window = self._options.window_seconds
        default = self._options.limit
        others = actor_state.expected_others(known, now)
        stated = self._stated_limit or min(default, known.limit or default)
        limit = max(stated - others, min(stated, math.ceil(window)))  # one a second stays ours
        self._limit = min(limit, self._options.max_requests_per_window or limit)
        even = window / self._limit
        if now < known.caution_until:
            return Share(self._owner, self._limit, window, 0.0, CAUTION_SPACING * even)
        spacing = SHARED_SPACING * even if others else 0.0
        return Share(self._owner, self._limit, window, credit_of(self._trips), spacing)

    def _reader(self, execute: Execute, now: float) -> SlotReader:
        return SlotReader(execute, self._actor, self._owner, now, self._options)

    def _learn(
        self, execute: Execute, known: RateLimitActor, ended: Slot, answered: float, now: float
    ) -> None:
        """Write how long a request holds its slot; learn the limit, of others, of our own 429s."""
        until = answered + self._options.window_seconds + MARGIN
        credit = credit_of(self._trips)
        told = {} if ended.trip is None else {"sent_at": answered - ended.trip, "credit": credit}
        execute(UPDATE, {"held_until": until, "of": ended.number, **told})
        said = read_rate_headers(ended.status, ended.headers, known.limit)
        is_refused = ended.status == HTTPStatus.TOO_MANY_REQUESTS
        if is_refused:
            actor_state.block(known, self._options.window_seconds + MARGIN, now, self._clock.time())
        if said is None:
            return
        if said.limit and not is_refused:
            known.limit = self._stated_limit = said.limit
        is_vague = (said.remaining is None or said.remaining > HIGHEST_LIMIT) and not is_refused
        if is_vague or ended.trip is None or ended.trip > KEPT_SECONDS:
            return
        share = self._share(known, now)
        slots = self._reader(execute, now).read(SELECT)
        if is_refused:  # our credit may have been the mistake
            share = replace(share, credit=0.0)
            slots = [slot for slot in slots if slot.number != ended.number]
        ours = count_ours(slots, ended.trip, share, answered)
        limit = said.limit or known.limit or self._options.limit
        others = 0 if said.remaining is None else limit - said.remaining - ours
        if others > 0 and not is_refused:
            actor_state.see_others(known, others, now, is_full=said.remaining == 0)
        elif is_refused and ours >= limit and not actor_state.expected_others(known, now):
            actor_state.be_cautious(known, now - ended.trip, now)


def forget_block(metadata: Metadata, actor: str) -> None:
    """Forget a remembered Retry-After of an actor: its next request is sent at once."""
    with metadata.transaction() as session:
        if known := session.get(RateLimitActor, actor):
            known.blocked_until = known.blocked_until_unix = 0.0
