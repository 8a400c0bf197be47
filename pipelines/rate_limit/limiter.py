"""Sends each request at the earliest moment at which the service should not refuse it.

The processes of an actor share its slots through the metadata database. Each access is one short
transaction. Times are seconds of the clock that the processes share (`Metadata.now`).
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from sqlalchemy import Select, bindparam, delete, func, insert, or_, select, update

from pipelines.core.clock import Clock
from pipelines.core.errors import Postponed, StorageFailed
from pipelines.metadata.engine import Metadata, is_alive, this_process
from pipelines.metadata.tables import Base, RateLimitActor
from pipelines.rate_limit import memory
from pipelines.rate_limit.headers import HIGHEST_LIMIT, read_rate_headers
from pipelines.rate_limit.policy import LEAD, MARGIN, Share, count_ours, credit_of, next_slot

LONGEST_SLEEP = 0.5  # seconds until another look: a process may have died, a block be forgotten
NOTED_SECONDS = 30.0  # of a wait, between two messages
LAST_LOOK = 0.005  # seconds before its moment at which a request looks once more
HEAD_START = 0.002  # for the request before: a look stops the event loop, which has to write it
KEPT_SECONDS = 2.0  # for which a free slot may explain what an answer counts
# If an answer says that so many requests remain, so many of the next seconds need no slot.
AMPLE, COVERED, COVERED_SECONDS = 10_000, 99, 0.25
REMEMBERED_TRIPS = 300  # round trips: one minute at 5 requests per second
PREFETCH_MARGIN = 0.1  # requests: a round trip so short is filled by one request after the other
CAUTION_SPACING = 1.05  # of the even distance between requests
SHARED_SPACING = 0.9  # the same beside other clients: requests that come together hide theirs
# Without objects: each request is a few transactions.
ACTORS, SLOTS = (Base.metadata.tables[f"rate_limit_{each}"] for each in ("actors", "slots"))
KNOWN = select(ACTORS).where(ACTORS.c.actor == bindparam("of"))
LEARNED = update(ACTORS).where(ACTORS.c.actor == bindparam("of"))
of_actor = SLOTS.c.actor == bindparam("of")
SELECT = select(SLOTS).where(of_actor)
# Those that are held, or count for the spacing in caution.
HELD = SELECT.where(or_(SLOTS.c.held_until.is_(None), SLOTS.c.held_until > bindparam("since")))
COUNT = select(func.count()).where(of_actor, SLOTS.c.owner == bindparam("by"))
ADD = insert(SLOTS).returning(SLOTS.c.number)
UPDATE = update(SLOTS).where(SLOTS.c.number == bindparam("of"))
DELETE = delete(SLOTS).where(of_actor, SLOTS.c.held_until < bindparam("before"))
Execute = Callable[..., Any]
"""Executes a statement in a transaction."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LimitOptions:
    """What a limiter keeps to."""

    limit: int = 5  # until the service states one
    window_seconds: float = 1.0
    max_requests_per_window: int | None = None  # our share of the limit for good
    request_timeout_seconds: float = 60.0


@dataclass
class Slot:
    """One request's place. The transport sets the times (Unix seconds) and what was answered."""

    number: int = 0
    place: int = 0
    sent_at: float = 0.0  # request headers written
    answered_at: float | None = None  # answer headers received
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    ended: float = 0.0  # monotonic seconds at which the limiter got it back

    @property
    def trip(self) -> float | None:
        """Seconds until the answer; None without one, and if the clock was set back meanwhile."""
        trip = -1.0 if self.answered_at is None else self.answered_at - self.sent_at
        return trip if trip >= 0 else None


class RateLimiter:
    """The limiter of one actor, shared with all processes through the metadata database."""

    def __init__(
        self, metadata: Metadata, actor: str, clock: Clock, options: LimitOptions | None = None
    ) -> None:
        self._metadata, self._actor, self._clock = metadata, actor, clock
        self._options = options or LimitOptions()
        self._owner, self._clock_name = this_process(), metadata.clock_name
        self._turn = asyncio.Lock()
        self._active = 0  # requests that wait or are under way
        self._limit = self._options.limit  # ours, per window, as of the last look
        self._stated_limit: int | None = None  # by an answer to this process
        self._trips: deque[float] = deque(maxlen=REMEMBERED_TRIPS)
        self._ended: list[Slot] = []  # not yet written
        self._may_cover = not self._options.max_requests_per_window
        self._covered, self._covered_until = 0, -math.inf  # requests that need no slot

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
                if self._covered < 0 or self._clock.monotonic() > self._covered_until:
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
            self._covered, self._covered_until = 0, slot.ended + COVERED_SECONDS
            self._ended.append(slot)
            # It writes what ended; the next one tries again, and raises.
            with suppress(StorageFailed), self._transaction() as (_execute, known, now):
                self._covered = COVERED * (is_ample and known.blocked_until <= now)

    async def wait_for_pause(self) -> None:
        """Wait while nobody may send (Retry-After), without a slot. Raises as `hold` does."""
        await self._take(None)

    def block(self, seconds: float) -> None:
        """Let no process of this actor send for so long (Retry-After), at most 7 days."""
        self._covered = 0
        with self._transaction() as (_execute, known, now):
            memory.block(known, seconds, now, self._clock.time())

    def spare(self) -> bool:
        """Return whether latency leaves part of the limit unused, so pages may be prefetched."""
        trips = sorted(self._trips) or [0.0]
        filling = trips[9 * len(trips) // 10] * self._limit / self._options.window_seconds
        return self._active < math.ceil(filling - PREFETCH_MARGIN) + 1

    async def _take(self, slot: Slot | None) -> None:
        """Wait until the request may be sent; look once more `LAST_LOOK` seconds before."""
        noted = -math.inf
        try:
            while (wait := self._look(slot) - (now := self._clock.monotonic())) > LAST_LOOK:
                if min(wait, now - noted) > NOTED_SECONDS:
                    noted = now
                    logger.info("Pause, or no room in the limit: requests go on in %.0f s.", wait)
                before = LEAD - MARGIN if wait > LEAD else LAST_LOOK
                await self._clock.sleep(min(wait - before, LONGEST_SLEEP))
            await self._clock.sleep(wait)
        except BaseException:
            with suppress(StorageFailed), self._transaction() as (execute, _known, _now):
                execute(UPDATE, {"held_until": 0.0, "of": slot and slot.number})
            raise

    def _look(self, mine: Slot | None) -> float:
        """Return when the request may be sent, in monotonic seconds; queue until then.

        Within `LEAD` its slot is taken; without one, only a pause counts. Raises Postponed.
        """
        with self._transaction() as (execute, known, now):
            ahead = now - self._clock.monotonic()
            due = self._queue(execute, known, mine, now) if mine else known.blocked_until
        if known.blocked_until - now > memory.LONGEST_WAIT:
            until = datetime.fromtimestamp(self._clock.time() + known.blocked_until - now, UTC)
            raise Postponed(
                "The service asks for a longer pause than a run may take. No request is sent "
                f"before {until:%Y-%m-%d %H:%M} UTC.",
                f"Run `partner-sync sync` after {until:%Y-%m-%d %H:%M} UTC to resume.",
            )
        return due - ahead

    def _queue(self, execute: Execute, known: RateLimitActor, mine: Slot, now: float) -> float:
        slots = self._slots(execute, now, HELD)
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
            execute, before = connection.execute, self._clock.monotonic()
            now, unix_now = self._metadata.now(connection, self._clock), self._clock.time()
            found = execute(KNOWN, {"of": self._actor}).mappings().one_or_none()
            known = RateLimitActor(**found or {"actor": self._actor})
            if known.clock != self._clock_name:
                memory.change_clock(known, self._clock_name, now, unix_now)
            for slot in self._ended:  # `before` is early: a slot is held too long, never too short
                self._learn(execute, known, slot, now - (before - slot.ended), now)
            yield execute, known, now
            learned = {name: getattr(known, name) for name in ACTORS.columns.keys()}  # noqa: SIM118
            if found is None:
                execute(insert(ACTORS), learned)
            elif learned != found:
                execute(LEARNED, {**learned, "of": self._actor})
        self._ended.clear()

    def _share(self, known: RateLimitActor, now: float) -> Share:
        window, default = self._options.window_seconds, self._options.limit
        others = memory.expected_others(known, now)
        stated = self._stated_limit or min(default, known.limit or default)
        limit = max(stated - others, min(stated, math.ceil(window)))  # one a second stays ours
        self._limit = min(limit, self._options.max_requests_per_window or limit)
        even = window / self._limit
        if now < known.caution_until:
            return Share(self._owner, self._limit, window, 0.0, CAUTION_SPACING * even)
        spacing = SHARED_SPACING * even if others else 0.0
        return Share(self._owner, self._limit, window, credit_of(self._trips), spacing)

    def _slots(self, execute: Execute, now: float, which: Select[Any] = SELECT) -> Sequence[Any]:
        """Return slots of the actor; correct until when they are held."""
        window, deadline = self._options.window_seconds, self._options.request_timeout_seconds
        is_correct = True
        since = now - (CAUTION_SPACING - 1) * window
        slots = execute(which, {"of": self._actor, "since": since}).all()
        owners = {slot.owner for slot in slots if slot.held_until is None} - {self._owner}
        dead = {owner for owner in owners if not is_alive(owner)}
        for slot in slots:
            until = slot.held_until
            if until is not None:  # after a restart it would be held for too long
                until = min(until, now + window + (deadline if slot.credit is None else MARGIN))
            elif slot.owner in dead:
                until = now + deadline if (slot.sent_at or math.inf) <= now else 0.0
            if until != slot.held_until:
                execute(UPDATE, {"held_until": until, "of": slot.number})
                is_correct = False
        return slots if is_correct else self._slots(execute, now, which)

    def _learn(
        self, execute: Execute, known: RateLimitActor, ended: Slot, answered: float, now: float
    ) -> None:
        """Write how long a request holds its slot; learn the limit, of others, of our own 429s."""
        until, credit = answered + self._options.window_seconds + MARGIN, credit_of(self._trips)
        told = {} if ended.trip is None else {"sent_at": answered - ended.trip, "credit": credit}
        execute(UPDATE, {"held_until": until, "of": ended.number, **told})
        said = read_rate_headers(ended.status, ended.headers, known.limit)
        is_refused = ended.status == HTTPStatus.TOO_MANY_REQUESTS
        if is_refused:
            memory.block(known, self._options.window_seconds + MARGIN, now, self._clock.time())
        if said is None:
            return
        if said.limit and not is_refused:
            known.limit = self._stated_limit = said.limit
        is_vague = (said.remaining is None or said.remaining > HIGHEST_LIMIT) and not is_refused
        if is_vague or ended.trip is None or ended.trip > KEPT_SECONDS:
            return
        share, slots = self._share(known, now), self._slots(execute, now)
        if is_refused:  # our credit may have been the mistake
            share = replace(share, credit=0.0)
            slots = [slot for slot in slots if slot.number != ended.number]
        ours = count_ours(slots, ended.trip, share, answered)
        limit = said.limit or known.limit or self._options.limit
        others = 0 if said.remaining is None else limit - said.remaining - ours
        if others > 0 and not is_refused:
            memory.see_others(known, others, now, is_full=said.remaining == 0)
        elif is_refused and ours >= limit and not memory.expected_others(known, now):
            memory.be_cautious(known, now - ended.trip, now)


def forget_block(metadata: Metadata, actor: str) -> None:
    """Forget a remembered Retry-After of an actor: its next request is sent at once."""
    with metadata.transaction() as session:
        if known := session.get(RateLimitActor, actor):
            known.blocked_until = known.blocked_until_unix = 0.0
