"""Here: the rows of an actor in the metadata database, read and corrected.

Not here: what they mean for the next request (policy), who waits for it (limiter).
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, func, insert, or_, select, update

from pipelines.metadata.processes import living
from pipelines.metadata.tables import Base, RateLimitActor
from pipelines.rate_limit.policy import CAUTION_SPACING, MARGIN

# Statements on tables, not on mapped objects: with these, a request took 5 ms instead of 3.
ACTORS = Base.metadata.tables["rate_limit_actors"]
SLOTS = Base.metadata.tables["rate_limit_slots"]
SELECT_ACTOR = select(ACTORS).where(ACTORS.c.actor == bindparam("of"))
INSERT_ACTOR = insert(ACTORS)
UPDATE_ACTOR = update(ACTORS).where(ACTORS.c.actor == bindparam("of"))
END_PAUSE = UPDATE_ACTOR.values(blocked_until=0.0, blocked_until_unix=0.0)
OF_ACTOR = SLOTS.c.actor == bindparam("of")
SELECT_SLOTS = select(SLOTS).where(OF_ACTOR)
# Those that are held, or count for the spacing in caution.
SELECT_HELD_SLOTS = SELECT_SLOTS.where(
    or_(SLOTS.c.held_until.is_(None), SLOTS.c.held_until > bindparam("since"))
)
COUNT_SLOTS = select(func.count()).where(OF_ACTOR, SLOTS.c.owner == bindparam("by"))
INSERT_SLOT = insert(SLOTS).returning(SLOTS.c.number)
UPDATE_SLOT = update(SLOTS).where(SLOTS.c.number == bindparam("of"))
DELETE_FREE_SLOTS = delete(SLOTS).where(OF_ACTOR, SLOTS.c.held_until < bindparam("before"))
Execute = Callable[..., Any]
"""Executes a statement in a transaction."""


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

    def read_slots(self, query: Select[Any]) -> Sequence[Any]:
        """Return slots; correct until when they are held."""
        since = self.now - (CAUTION_SPACING - 1) * self.options.window_seconds
        slots: Sequence[Any] = self.execute(query, {"of": self.state.actor, "since": since}).all()
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
            return self.read_slots(query)
        return slots

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
