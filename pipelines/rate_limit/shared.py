"""What the processes of an actor share: each method is one short transaction that never waits."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus

from sqlalchemy.orm import Session

from pipelines.core.clock import Clock
from pipelines.core.errors import StorageFailed
from pipelines.metadata.engine import Metadata, is_alive, this_process
from pipelines.rate_limit import store
from pipelines.rate_limit.headers import (
    is_of_actor,
    read_rate_headers,
    read_retry_after,
)
from pipelines.rate_limit.memory import (
    CAUTION_SPACING,
    LONGEST_BLOCK,
    SHARED_SPACING,
    Answer,
    Memory,
    learn,
)
from pipelines.rate_limit.policy import (
    LEAD,
    MARGIN,
    LimitState,
    RoundTrips,
    Row,
    Share,
    next_slot,
    ours_in_window,
)
from pipelines.rate_limit.steps import ClockSteps

STALE_ROWS = 10  # so many released rows are deleted together; few rows make each look fast
LONGEST_KEPT = 5.0  # seconds for which a released row may explain what an answer counts
ALIVE_SECONDS = 0.25  # a process that lived is not looked up again for so long


@dataclass(frozen=True)
class LimitOptions:
    """The limit until the service states one, our share of it for good, and the deadline.

    A `Retry-After` longer than `longest_wait_seconds` ends the run with Postponed.
    """

    limit: int = 5
    window_seconds: float = 1.0
    max_requests_per_window: int | None = None
    request_timeout_seconds: float = 60.0
    longest_wait_seconds: float = 900.0


@dataclass(frozen=True)
class Turn:
    """When a request may be sent, in monotonic seconds, and whether its slot is taken.

    `blocked_seconds` is what remains of a Retry-After.
    """

    number: int
    due: float
    is_taken: bool
    blocked_seconds: float


@dataclass(frozen=True)
class Ended:
    """A request that was answered or failed at `ended`; times are monotonic seconds."""

    number: int
    ended: float
    sent: float | None = None
    answered: float | None = None
    status: int | None = None
    headers: Mapping[str, str] | None = None

    @property
    def is_refused(self) -> bool:
        """Whether the service answered 429."""
        return self.status == HTTPStatus.TOO_MANY_REQUESTS


class SharedSlots:
    """The slots of one actor as one process uses them."""

    def __init__(self, metadata: Metadata, actor: str, clock: Clock, options: LimitOptions) -> None:
        self.owner = this_process()
        self.round_trips = RoundTrips()
        self.limit = options.limit  # ours, per window, as of the last look
        self._metadata = metadata
        self._actor = actor
        self._clock = clock
        self._options = options
        self._is_limit_stated = False
        self._unwritten: list[Ended] = []
        self._steps = ClockSteps()
        self._offset = 0.0  # shared time less monotonic: at least, so that no answer seems earlier
        self._not_before = -math.inf  # monotonic seconds, after a step of the clock
        self._block = (0.0, -math.inf)  # blocked_until as stored, and in monotonic seconds
        self._alive: dict[str, float] = {}  # monotonic second at which an owner lived

    def look(self, number: int) -> Turn:
        """Take a slot if it is due within `LEAD`, else queue; `number` is our row, 0 for none."""
        with self._transaction() as (session, now, monotonic):
            self._write(session)
            memory = store.read_memory(session, self._actor)
            blocked = self._blocked_seconds(memory.blocked_until, now, monotonic)
            rows = self._live_rows(session, now, monotonic)
            if all(row.number != number for row in rows):
                number = 0  # another process took us for dead: queue again
            blocked_until = now + max(blocked, self._not_before - monotonic)
            ahead = [row for row in rows if not number or row.number < number]
            sent = [min(row.sent_at, now + LEAD) for row in rows if row.sent_at is not None]
            last_sent_at = max(sent, default=-math.inf)
            share = self._share(memory, now)
            due = next_slot(LimitState(ahead, share, blocked_until, last_sent_at), now)
            is_taken = due <= now + LEAD
            if not number:
                number = store.add_row(session, self._actor, self.owner, due if is_taken else None)
            elif is_taken:
                store.change_row(session, number, {"sent_at": due})
        self._unwritten.clear()
        return Turn(number, monotonic + due - now, is_taken, blocked)

    def confirm(self, number: int) -> bool:
        """Return whether a taken slot may still be used; if not, its row waits again."""
        with self._transaction() as (session, now, monotonic):
            memory = store.read_memory(session, self._actor)
            blocked = self._blocked_seconds(memory.blocked_until, now, monotonic)
            is_free = blocked <= 0 and self._not_before <= monotonic
            if not is_free:
                store.change_row(session, number, {"sent_at": None})
        return is_free

    def withdraw(self, number: int) -> None:
        """Leave the queue, or give back a slot that was not used."""
        with self._transaction() as (session, _, _):
            store.delete_rows(session, [number])

    def end(self, ended: Ended) -> None:
        """Store how long a request holds its slot, and what its answer says."""
        if ended.sent is not None and ended.answered is not None:
            self.round_trips.add(ended.answered - ended.sent)
        self._unwritten.append(ended)
        with suppress(StorageFailed):  # the next look tries again, and raises
            with self._transaction() as (session, _, _):
                self._write(session)
            self._unwritten.clear()

    def block(self, seconds: float) -> None:
        """Let no process of the actor send for so long, at most 7 days."""
        with self._transaction() as (session, now, _):
            memory = store.read_memory(session, self._actor)
            store.write_memory(session, self._actor, memory.with_block(now + seconds, now))

    @contextmanager
    def _transaction(self) -> Iterator[tuple[Session, float, float]]:
        """Yield a session, the shared time, and the monotonic time of the same moment or later."""
        with self._metadata.transaction() as session:
            session.connection()  # waits for the transactions of others: their times are past
            before = self._clock.monotonic()
            now = self._metadata.now(session)
            after = self._clock.monotonic()
            self._offset = now - before
            if self._steps.observe(before, now, after):
                self._correct(session, now, after)
            yield session, now, after

    def _correct(self, session: Session, now: float, monotonic: float) -> None:
        """Wait one window after the clock was set, and keep a Retry-After as long as it was."""
        self._not_before = monotonic + self._options.window_seconds + MARGIN
        stored, until = self._block
        memory = store.read_memory(session, self._actor)
        if until > monotonic and memory.blocked_until == stored:
            self._block = (now + until - monotonic, until)
            memory = replace(memory, blocked_until=self._block[0])
            store.write_memory(session, self._actor, memory)

    def _blocked_seconds(self, blocked_until: float, now: float, monotonic: float) -> float:
        if blocked_until != self._block[0]:
            remaining = min(blocked_until - now, LONGEST_BLOCK)
            self._block = (blocked_until, monotonic + remaining)
        return self._block[1] - monotonic

    def _share(self, memory: Memory, now: float) -> Share:
        window, known = self._options.window_seconds, memory.limit or self._options.limit
        if not self._is_limit_stated:
            known = min(known, self._options.limit)
        limit = known - memory.reserve(known, window, now)
        self.limit = max(1, min(limit, self._options.max_requests_per_window or limit))
        even = window / self.limit
        if memory.is_cautious(now):
            return Share(self.owner, self.limit, window, 0.0, CAUTION_SPACING * even)
        spacing = SHARED_SPACING * even if memory.others_seen(now) else 0.0
        return Share(self.owner, self.limit, window, self.round_trips.credit(), spacing)

    def _live_rows(self, session: Session, now: float, monotonic: float) -> list[Row]:
        """Return the rows of requests that may still count; correct and delete others."""
        found = []
        for row in store.read_rows(session, self._actor):
            held_until = self._held_until(row, now, monotonic)
            if held_until != row.held_until:
                store.change_row(session, row.number, {"held_until": held_until})
            found.append(replace(row, held_until=held_until))
        unanswered = [row.sent_at for row in found if row.held_until is None and row.sent_at]
        oldest = max(min([now, *unanswered]), now - LONGEST_KEPT)
        kept = [row for row in found if row.held_until is None or row.held_until >= oldest]
        if len(found) - len(kept) >= STALE_ROWS:
            numbers = {row.number for row in found} - {row.number for row in kept}
            store.delete_rows(session, numbers)
        return kept

    def _held_until(self, row: Row, now: float, monotonic: float) -> float | None:
        """Return until when a row is held, after the death of its owner or a step of the clock."""
        window, deadline = self._options.window_seconds, self._options.request_timeout_seconds
        if row.held_until is not None:  # a clock that was set back would hold it for too long
            longest = window + MARGIN if row.answered_at is not None else window + deadline
            return min(row.held_until, now + longest)
        if self._is_owner_alive(row.owner, monotonic):
            return None
        was_sent = row.sent_at is not None and row.sent_at <= now
        return now + deadline if was_sent else 0.0

    def _is_owner_alive(self, owner: str, monotonic: float) -> bool:
        if owner == self.owner or monotonic - self._alive.get(owner, -math.inf) < ALIVE_SECONDS:
            return True
        if alive := is_alive(owner):
            self._alive[owner] = monotonic
        return alive

    def _write(self, session: Session) -> None:
        """Write what ended, in shared time."""
        offset = self._offset
        for ended in self._unwritten:
            is_counted = ended.answered is not None and not ended.is_refused
            answered = ended.answered if is_counted else None
            left = (ended.ended if answered is None else answered) + offset
            values = {
                "answered_at": None if answered is None else left,
                "held_until": left + self._options.window_seconds + MARGIN,
                "credit": self.round_trips.credit() if is_counted else 0.0,
            }
            if ended.sent is not None:
                values["sent_at"] = ended.sent + offset
            store.change_row(session, ended.number, values)
            if ended.answered is not None and ended.status is not None:
                self._hear(session, ended, offset)

    def _hear(self, session: Session, ended: Ended, offset: float) -> None:
        """Learn from an answer: the limit, a Retry-After, other clients, a 429 of our own."""
        headers, now = ended.headers or {}, ended.ended + offset
        before = memory = store.read_memory(session, self._actor)
        said = read_rate_headers(headers)
        if is_of_actor(ended.status or 0, said, memory.limit):
            self._is_limit_stated |= said.limit is not None
            share = self._share(memory, now)
            if ended.is_refused:  # our credit may have been the mistake
                share = replace(share, credit=0.0)
            ours = self._ours(session, ended, offset, share)
            answer = Answer((ended.sent or ended.ended) + offset, ended.is_refused, said, ours)
            memory = learn(memory, answer, self._options.limit, now)
        if ended.is_refused:
            seconds = read_retry_after(headers, self._clock.time())
            seconds = self._options.window_seconds if seconds is None else seconds
            memory = memory.with_block(now + seconds + MARGIN, now)
        if memory != before:
            store.write_memory(session, self._actor, memory)

    def _ours(self, session: Session, ended: Ended, offset: float, share: Share) -> int | None:
        """Count our requests that an answer may count; None if the rows do not tell."""
        if ended.sent is None or ended.answered is None or ended.sent < self._not_before:
            return None
        if ended.answered - ended.sent > LONGEST_KEPT:
            return None
        rows = store.read_rows(session, self._actor)
        counted = [row for row in rows if row.number != ended.number or not ended.is_refused]
        return ours_in_window(counted, ended.sent + offset, ended.answered + offset, share)


def forget_block(metadata: Metadata, actor: str) -> None:
    """Forget a remembered Retry-After of an actor: its next request is sent at once."""
    with metadata.transaction() as session:
        store.forget_block(session, actor)
