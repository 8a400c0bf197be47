"""Here: the rows of an actor in the metadata database, read and corrected.

Not here: what they mean for the next request (policy), who waits for it (limiter).
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from pipelines.metadata.processes import living
from pipelines.metadata.tables import Base, RateLimitActor
from pipelines.rate_limit.policy import CAUTION_SPACING, MARGIN

# Statements on tables, not on mapped objects: with these, a request took 5 ms instead of 3.
ACTORS = Base.metadata.tables["rate_limit_actors"]
SLOTS = Base.metadata.tables["rate_limit_slots"]
# It locks the row, and so lets in one process after the other: see `Metadata.row_transaction`.
LOCK_ACTOR = select(ACTORS).where(ACTORS.c.actor == bindparam("of")).with_for_update()
UPDATE_ACTOR = update(ACTORS).where(ACTORS.c.actor == bindparam("of"))
END_PAUSE = UPDATE_ACTOR.values(blocked_until=0.0, blocked_until_unix=0.0)
OF_ACTOR = SLOTS.c.actor == bindparam("of")
SELECT_SLOTS = select(SLOTS).where(OF_ACTOR)
INSERT_SLOT = insert(SLOTS).returning(SLOTS.c.number)
UPDATE_SLOT = update(SLOTS).where(SLOTS.c.number == bindparam("of"))
DELETE_PAST_SLOTS = delete(SLOTS).where(OF_ACTOR, SLOTS.c.held_until < bindparam("before"))
PAST_SLOTS = 8  # so many may stay
# For which a free slot may explain what an answer counts. An answer may be written 1 s late.
KEPT_SECONDS = 3.0
Execute = Callable[..., Any]
"""Executes a statement in a transaction."""


@dataclass(frozen=True)
class LimitOptions:
    """What a limiter keeps to."""

    limit: int = 5  # until the service states one
    window_seconds: float = 1.0
    max_requests_per_window: int | None = None  # our share of the limit for good
    request_timeout_seconds: float = 60.0
    connection: str = ""  # for messages


@dataclass
class Slot:
    """One request's place. The transport sets the times (Unix seconds) and what was answered."""

    number: int = 0
    place: int = 0
    is_taken: bool = False  # its moment is in the database, so that no other request gets it
    sent_at: float = 0.0  # request headers written
    answered_at: float | None = None  # answer headers received
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    ended_at: float = 0.0  # monotonic seconds at which the limiter got it back

    @property
    def trip(self) -> float | None:
        """Seconds until the answer; None without one, and if the clock was set back meanwhile."""
        if self.answered_at is None or self.answered_at < self.sent_at:
            return None
        return self.answered_at - self.sent_at


@dataclass(frozen=True)
class Transaction:
    """One transaction: its connection, what is known of the actor, the time, and its slots.

    A changed `state` is written at the end. `owner` is this process: it lives.
    """

    connection: Connection
    state: RateLimitActor
    now: float
    owner: str
    options: LimitOptions

    @property
    def execute(self) -> Execute:
        """Executes a statement."""
        return self.connection.execute

    def read_slots(self) -> Sequence[Any]:
        """Return the slots that are kept; correct until when they are held."""
        slots: Sequence[Any] = self.execute(SELECT_SLOTS, {"of": self.state.actor}).all()
        owners = {slot.owner for slot in slots if slot.held_until is None} - {self.owner}
        dead_owners = set[str]()
        if owners:
            dead_owners = owners - living(self.connection, owners)
        is_correct = True
        for slot in slots:
            until = self._held_until(slot, dead_owners)
            if until != slot.held_until:
                self.execute(UPDATE_SLOT, {"held_until": until, "of": slot.number})
                is_correct = False
        if not is_correct:
            return self.read_slots()
        return slots

    def held(self, slots: Sequence[Any]) -> list[Any]:
        """Return the slots that are held, or count for the spacing in caution."""
        since = self.now - (CAUTION_SPACING - 1) * self.options.window_seconds
        return [slot for slot in slots if slot.held_until is None or slot.held_until > since]

    def is_past(self, slot: Any) -> bool:
        """Return whether a slot is free for so long that it explains no answer any more."""
        return slot.held_until is not None and slot.held_until < self.now - KEPT_SECONDS

    def last_place(self, slots: Sequence[Any]) -> int:
        """Return the place of a request of this process that joins the queue now.

        Who has sent more of late gives way to as many others. First come, first served let one of
        four processes take up to five slots of the first burst.
        """
        last: int = max((slot.number for slot in slots), default=0)
        recent = [slot for slot in slots if not self.is_past(slot)]
        sent: int = sum(slot.owner == self.owner for slot in recent)
        return last + 1 + sent

    def delete_past(self, slots: Sequence[Any]) -> None:
        """Delete past slots, several together. With 150 of them, a look took 9 ms."""
        if sum(self.is_past(slot) for slot in slots) > PAST_SLOTS:
            before = self.now - KEPT_SECONDS
            self.execute(DELETE_PAST_SLOTS, {"of": self.state.actor, "before": before})

    def _held_until(self, slot: Any, dead_owners: AbstractSet[str]) -> float | None:
        """Return until when a slot is held; None while it is not known."""
        timeout = self.options.request_timeout_seconds
        until: float | None = slot.held_until
        if until is not None:
            # After a restart the clock of this machine begins again: the time would be far away.
            longest = timeout if slot.credit is None else MARGIN
            return min(until, self.now + self.options.window_seconds + longest)
        if slot.owner not in dead_owners:
            return None
        # What a killed process sent may still arrive, until it would have timed out.
        is_under_way = slot.sent_at is not None and slot.sent_at <= self.now
        return self.now + timeout if is_under_way else 0.0
