"""Here: each request waits for the earliest moment at which the service should not refuse it.

An actor is the account for which the service counts requests. `hold` lets in one request of a
process after the other; it queues (`_queue`) and waits (`_wait`), also for the end of a pause after
a 429. Requests for a token wait only for that (`wait_for_pause`). A request that a pause catches at
the last moment (`check_leaving`) is sent to `hold` again.

Not here: which moment that is (policy), what answers say of the limit (learner), how long a refused
request waits besides (http.retry).

The processes of an actor share its slots through the metadata database. Each access is one short
transaction. In the database, times are seconds of the clock that the processes share
(`Metadata.now`); a `Slot` has those of this process.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from http import HTTPStatus

from pipelines.core.clock import Clock
from pipelines.core.errors import Postponed, StorageFailed
from pipelines.metadata.engine import Metadata
from pipelines.metadata.tables import RateLimitActor, RateLimitSlot
from pipelines.rate_limit import actor_state
from pipelines.rate_limit.known_pause import MustWait, pause_of
from pipelines.rate_limit.learner import Learner
from pipelines.rate_limit.policy import LEAD, MARGIN, next_moment
from pipelines.rate_limit.rows import (
    ACTORS,
    END_PAUSE,
    INSERT_SLOT,
    LOCK_ACTOR,
    UPDATE_ACTOR,
    UPDATE_SLOT,
    LimitOptions,
    Slot,
    Transaction,
)
from pipelines.rate_limit.shared_clock import SharedClock

__all__ = ["LimitOptions", "RateLimiter", "Slot", "end_pause"]

LONGEST_SLEEP = 0.5  # seconds until another look: a process may have died, a pause be ended
# Seconds until what ended is written where no request waits; one that waits looks more often.
LONGEST_UNWRITTEN = 1.0
NOTED_SECONDS = 30.0  # of a wait, between two messages
# A look is a transaction of 3 ms. At the moment itself it made each request late, and the one
# before it, too: a look stops the event loop, which has to write that one. With both, the pace at
# 150 ms of latency went from 1.030 to 1.016 (docs/decisions.md).
LAST_LOOK = 0.005  # seconds before its moment at which a request looks once more
HEAD_START = 0.002  # seconds for the request before
LAST_PLACE = (math.inf, math.inf)  # in the queue
# A readable answer needs so many turns of the event loop until its headers are known.
TURNS = 3
# If an answer says that so many requests remain, so many of the next seconds need no slot. Without
# a limit, two transactions for each request took a fifth of an unchanged sync.
AMPLE_REQUESTS = 10_000
SLOTLESS_REQUESTS = 99
SLOTLESS_SECONDS = 0.25
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
        self._owner = metadata.this_process()
        self._clock_name = metadata.clock_name
        self._shared = SharedClock(metadata, clock)
        self._pause = pause_of(actor)
        # Fair, so that a process has one place in the queue of all processes.
        self._turn = asyncio.Lock()
        self._is_known = False  # the actor has its row
        self._active = 0  # requests that wait or are under way
        self._learner = Learner(self._options)
        self._unwritten: list[Slot] = []  # ended, and not yet in the database
        self._is_alone = False  # no other process has sent for this actor of late
        self._next_moment = -math.inf  # as known at the last look, in monotonic seconds
        # Without a share of ours, which can only be kept by counting.
        self._may_skip_slots = not self._options.max_requests_per_window
        self._slotless_left = 0  # further requests that need no slot
        self._slotless_until = -math.inf

    @asynccontextmanager
    async def hold(self, slot: Slot) -> AsyncIterator[None]:
        """Wait until one request may be sent; its slot, if it has one, is held for the block.

        That ends when the headers of its answer are there. A cancelled wait gives its slot back.
        After a 429 nobody sends for one window; a longer pause is up to `share_pause`. Raises
        StorageFailed, and Postponed.
        """
        self._active += 1
        try:
            async with self._turn:
                if not self._goes_without_slot():
                    await self._clock.sleep(HEAD_START)
                    await self._wait_or_release(slot)
            try:
                yield
            finally:
                self._end(slot)
        finally:
            self._active -= 1
            # Otherwise another request of this process writes it. If that fails, as where a server
            # is stopped, nobody else would: several slots were held until this process ends.
            for _try in range(2):
                if self._unwritten and not self._active:
                    self._write_ended()

    def _goes_without_slot(self) -> bool:
        """Return whether the next request is one of the few that need no slot."""
        self._slotless_left -= 1
        is_over = self._clock.monotonic() > self._slotless_until
        return self._slotless_left >= 0 and not is_over and not self._is_paused()

    def _end(self, slot: Slot) -> None:
        """Write how long a request holds its slot; where room is ample, let others go without."""
        slot.ended_at = self._clock.monotonic()
        if slot.trip is not None:
            self._learner.trips.append(slot.trip)
        is_refused = slot.status == HTTPStatus.TOO_MANY_REQUESTS
        if is_refused:
            # The headers that said how much room there is were wrong.
            self._may_skip_slots = False
        is_ample = self._may_skip_slots and self._learner.remaining(slot) >= AMPLE_REQUESTS
        if is_ample and not slot.number:
            # It went without a slot, and has nothing to write.
            return
        self._slotless_left = 0
        self._slotless_until = slot.ended_at + SLOTLESS_SECONDS
        self._unwritten.append(slot)
        is_urgent = is_ample or is_refused or not self._is_alone
        if is_urgent and self._write_ended() and is_ample:
            self._slotless_left = SLOTLESS_REQUESTS
        if len(self._unwritten) == 1:
            # What else is under way may hang for a minute, in which nobody looks.
            asyncio.get_running_loop().call_later(LONGEST_UNWRITTEN, self._write_left, slot.number)

    def _write_left(self, number: int) -> None:
        """Write what ended if no look has written the first of it, the slot with this number."""
        if self._unwritten and self._unwritten[0].number == number:
            self._write_ended()

    def _write_ended(self) -> bool:
        """Write what ended; return whether the database then says that requests may be sent."""
        # If it fails, the next transaction tries again, and raises.
        with suppress(StorageFailed), self._transaction() as transaction:
            return transaction.state.blocked_until <= transaction.now
        return False

    async def wait_for_pause(self) -> None:
        """Wait while nobody may send (Retry-After), without a slot. Raises as `hold` does."""
        await self._wait_or_release(None)

    def note_pause(self, seconds: float) -> None:
        """Let nobody in this process send for so long from now.

        `share_pause`, or the next transaction, lets the other processes know.
        """
        self._pause.note(self._clock.monotonic() + min(seconds, actor_state.LONGEST_PAUSE))

    def note_refusal(self, seconds: float) -> None:
        """Note the pause that a 429 asks for: one window at least."""
        self.note_pause(max(seconds, self._options.window_seconds + MARGIN))

    def share_pause(self, seconds: float) -> None:
        """Let no process of this actor send for so long (Retry-After), at most 7 days."""
        self._slotless_left = 0
        self.note_pause(seconds)
        with self._transaction():
            pass  # it writes what was noted

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
        trips = sorted(self._learner.trips) or [0.0]
        long_trip = trips[9 * len(trips) // 10]  # nine of ten are shorter
        # Requests that are under way at once where the limit is used up.
        filling = long_trip * self._learner.limit / self._options.window_seconds
        return self._active < math.ceil(filling - PREFETCH_MARGIN) + 1

    async def _wait_or_release(self, slot: Slot | None) -> None:
        """Wait until the request may be sent. A wait that ends otherwise gives the slot back."""
        try:
            await self._wait(slot)
            while self._is_paused():  # noted since the last look
                await self._wait(slot)
        except BaseException:
            self._next_moment = -math.inf
            with suppress(StorageFailed), self._transaction() as transaction:
                if slot is not None:
                    transaction.execute(UPDATE_SLOT, {"held_until": 0.0, "of": slot.number})
            raise

    async def _wait(self, slot: Slot | None) -> None:
        """Wait until the request may be sent; beside other processes, look shortly before."""
        noted_at = -math.inf
        if slot is not None and self._is_alone and not self._is_paused():
            # There is no queue to join before, so one look at the end of the wait is enough.
            await self._sleep(self._next_moment - self._clock.monotonic() - (LEAD - MARGIN))
        while True:
            try:
                moment = self._look(slot)
            except StorageFailed:
                # A server was stopped within the transaction. The next one waits for it.
                moment = self._look(slot)
            now = self._clock.monotonic()
            seconds = moment - now
            # A look may end so late that its slot is not taken yet, although the moment is near.
            is_ready = slot is None or slot.is_taken
            # Where no other process sends, none hears of a pause: the slot is all that it needs.
            is_last = seconds <= LAST_LOOK or (slot is not None and self._is_alone)
            if is_ready and is_last:
                break
            if min(seconds, now - noted_at) > NOTED_SECONDS:
                noted_at = now
                logger.info("Pause, or no room in the limit: requests go on in %.0f s.", seconds)
            # Its slot is taken at a look within `LEAD`, so that no other request gets the moment.
            margin = LEAD - MARGIN if seconds > LEAD else LAST_LOOK
            await self._sleep(seconds - margin)
        await self._clock.sleep(seconds)

    async def _sleep(self, seconds: float) -> None:
        """Sleep until the next look."""
        await self._clock.sleep(min(seconds, LONGEST_SLEEP))

    def _look(self, slot: Slot | None) -> float:
        """Return when the request may be sent, in monotonic seconds; queue until then.

        Within `LEAD` its slot is taken; without one, only a pause counts. Raises Postponed.
        """
        with self._transaction() as transaction:
            state = transaction.state
            now = transaction.now
            moment = state.blocked_until if slot is None else self._queue(transaction, slot)
        if state.blocked_until - now > actor_state.LONGEST_WAIT:
            until = datetime.fromtimestamp(self._clock.time() + state.blocked_until - now, UTC)
            raise Postponed(
                "The service asks for a longer pause than a run may take. No request is sent "
                f"before {until:%Y-%m-%d %H:%M} UTC.",
                f"Run `partner-sync sync` after {until:%Y-%m-%d %H:%M} UTC to resume.",
            )
        return moment - self._shared.least

    def _queue(self, transaction: Transaction, slot: Slot) -> float:
        """Return when the request may be sent; keep its place, and take its slot within `LEAD`."""
        now = transaction.now
        kept = transaction.read_slots()
        self._is_alone = {other.owner for other in kept} <= {self._owner}
        slots = transaction.held(kept)
        taken_moments = {held.number: held.sent_at for held in slots if held.held_until is None}
        taken_moment = taken_moments.get(slot.number)
        if slot.number not in taken_moments:  # no place yet, or it was released
            slot.number = 0
            slot.place = transaction.last_place(kept)
        elif taken_moment is not None and transaction.state.blocked_until <= now:
            return float(taken_moment)
        allowance = self._learner.allowance(transaction)
        moment = next_moment(slots, (slot.place, slot.number or math.inf), allowance, now)
        moment = max(moment, transaction.state.blocked_until)
        sent_at = moment if moment <= now + LEAD else None
        slot.is_taken = sent_at is not None
        values = {"sent_at": sent_at, "place": slot.place}
        if slot.number:
            transaction.execute(UPDATE_SLOT, {**values, "of": slot.number})
        else:
            transaction.delete_past(kept)
            new = {"actor": self._actor, "owner": self._owner, **values}
            slot.number = transaction.execute(INSERT_SLOT, new).scalar_one()
        taken = [held for held in slots if held.number != slot.number]
        taken.append(RateLimitSlot(actor=self._actor, owner=self._owner, sent_at=moment))
        following = next_moment(taken, LAST_PLACE, allowance, now)
        self._next_moment = following - self._shared.least
        return moment

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        """Yield one access to the database, which begins with writing what ended before it."""
        # Others free the slots of a process that does not hold its name.
        self._metadata.this_process()
        self._add_actor()
        about = {"of": self._actor}
        with self._metadata.row_transaction(LOCK_ACTOR, about) as (connection, row):
            known = {"actor": self._actor, **(row or {})}
            state = RateLimitActor(**known)
            self._shared.compare(connection)
            # The moment by three clocks: of this process, of all processes, and Unix time. What is
            # not known exactly makes us late, never early: answers and pauses end later, and now is
            # earlier than it may be.
            here = self._clock.monotonic()
            now = here + self._shared.least
            unix_now = self._clock.time()
            unsure = self._shared.most - self._shared.least
            noted = self._pause.noted
            if state.clock != self._clock_name:
                actor_state.change_clock(state, self._clock_name, now + unsure, unix_now)
            if noted > here:
                actor_state.pause(state, noted - here + unsure, now, unix_now)
            transaction = Transaction(connection, state, now, self._owner, self._options)
            for slot in self._unwritten:
                answered_at = slot.ended_at + self._shared.most
                self._learner.write_ended(transaction, slot, answered_at, unix_now)
            yield transaction
            values = {name: getattr(state, name) for name in ACTORS.columns.keys()}  # noqa: SIM118
            if values != known:
                connection.execute(UPDATE_ACTOR, {**values, **about})
        self._unwritten.clear()
        self._pause.update(state.blocked_until - self._shared.least, noted)

    def _add_actor(self) -> None:
        """Add the row of the actor if there is none; other transactions that might do so wait."""
        if self._is_known:
            return
        with self._metadata.transaction() as session:
            if session.get(RateLimitActor, self._actor) is None:
                session.add(RateLimitActor(actor=self._actor))
        self._is_known = True


def end_pause(metadata: Metadata, actor: str) -> None:
    """End the pause of an actor (Retry-After): its next request is sent at once."""
    # The limiter of another process writes back all that it has read: the row is its lock.
    with metadata.row_transaction(LOCK_ACTOR, {"of": actor}) as (connection, _row):
        connection.execute(END_PAUSE, {"of": actor})
