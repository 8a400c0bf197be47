"""Here: the rows of an actor in the metadata database, read and corrected.

Not here: what they mean for the next request (policy), who waits for it (limiter).
"""

import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, bindparam, delete, func, insert, or_, select, update

from pipelines.metadata.engine import is_alive
from pipelines.metadata.tables import Base
from pipelines.rate_limit.policy import CAUTION_SPACING, MARGIN

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


@dataclass(frozen=True)
class SlotReader:
    """Reads the slots of an actor in one transaction. `owner` is this process: it lives."""

    execute: Execute
    actor: str
    owner: str
    now: float
    options: LimitOptions

    def read(self, which: Select[Any]) -> Sequence[Any]:
        """Return slots; correct until when they are held."""
        since = self.now - (CAUTION_SPACING - 1) * self.options.window_seconds
        slots = self.execute(which, {"of": self.actor, "since": since}).all()
        owners = {slot.owner for slot in slots if slot.held_until is None} - {self.owner}
        dead = {each for each in owners if not is_alive(each)}
        is_correct = True
        for slot in slots:
            until = self._held_until(slot, dead)
            if until != slot.held_until:
                self.execute(UPDATE, {"held_until": until, "of": slot.number})
                is_correct = False
        return slots if is_correct else self.read(which)

    def _held_until(self, slot: Any, dead: AbstractSet[str]) -> float | None:
        deadline = self.options.request_timeout_seconds
        until: float | None = slot.held_until
        if until is not None:  # after a restart it would be held for too long
            longest = deadline if slot.credit is None else MARGIN
            return min(until, self.now + self.options.window_seconds + longest)
        if slot.owner not in dead:
            return None
        is_under_way = (slot.sent_at or math.inf) <= self.now
        return self.now + deadline if is_under_way else 0.0
