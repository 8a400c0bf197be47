"""Here: when the next request may be sent: arithmetic over the slots of one actor.

Not here: I/O, clock and waiting (limiter).

The service counts arrivals in a sliding window. We know when a request was sent and when it was
answered; it arrived in between. Times are seconds of the clock that the processes share.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from pipelines.metadata.tables import RateLimitSlot

MARGIN = 0.002  # clocks and timers round; the service counts both ends of a window
LEAD = 0.020  # a slot is taken so long before its moment, which hides the transaction
CAUTION_SPACING = 1.05  # of the even distance between requests
# The same beside other clients: requests that come together hide theirs. Without it, the other
# client got a 429 each second.
SHARED_SPACING = 0.9
FEWEST_TRIPS = 10  # the first requests of a process are slow together and prove nothing


def credit_of(trips: Sequence[float]) -> float:
    """Return how much earlier than one window after its answer a slot may be used again.

    A request arrived before its answer travelled back, and the next one has to travel there:
    together no less than the shortest possible round trip. The shortest one of `trips` may be
    longer than that, hence the doubt, which falls with their number. Statistical: 0 of 4,500
    simulated runs with jitter met a 429; without the doubt, 81 of 300 did.
    """
    count = len(trips)
    if count < FEWEST_TRIPS:
        return 0.0
    shortest = min(trips)
    doubt = (0.5 + 8 / count) * (median(trips) - shortest)
    return max(0.0, shortest - max(MARGIN, doubt, 2 * shortest / count))


@dataclass(frozen=True)
class Allowance:
    """What a process may use: `limit` requests per window, `spacing` seconds apart, its credit."""

    owner: str
    limit: int
    window: float
    credit: float
    spacing: float = 0.0

    def free_at(self, slot: RateLimitSlot, now: float) -> float:
        """Return when a slot is free; for an open one, the earliest moment possible."""
        if slot.held_until is None:
            return now + max(2 * LEAD, self.window + MARGIN - self.credit)
        if slot.credit is None:  # without an answer, nobody knows when the request arrived
            return slot.held_until
        if slot.owner == self.owner:
            return slot.held_until - self.credit
        return slot.held_until - min(self.credit, slot.credit)


def next_moment(
    slots: Iterable[RateLimitSlot], place: tuple[float, float], allowance: Allowance, now: float
) -> float:
    """Return when a request may be sent, `now` if at once. `place` is its place and number.

    Exact if it is within `LEAD` from now. A later moment is exact if no slot ahead waits or is
    unanswered, otherwise a lower bound: look again then. The number of a request that has none yet
    is infinite.
    """
    _place, number = place
    others = [slot for slot in slots if slot.number != number]
    ahead = [
        slot for slot in others if slot.sent_at is not None or (slot.place, slot.number) < place
    ]
    moment = now
    if allowance.spacing:
        moment = max(moment, _moment_by_spacing(others, ahead, allowance.spacing, now))
    # Most requests end here. Without a limit, to compare slots took 2 % of the CPU of a sync.
    if len(ahead) < allowance.limit:
        return moment
    free = sorted(allowance.free_at(slot, now) for slot in ahead)
    return max(moment, free[-allowance.limit])


def _moment_by_spacing(
    others: Iterable[RateLimitSlot], ahead: Iterable[RateLimitSlot], spacing: float, now: float
) -> float:
    """Return when a request may be sent after the last one, and after those that wait before it."""
    last_sent = -math.inf
    for slot in others:
        if slot.sent_at is not None:
            last_sent = max(last_sent, min(slot.sent_at, now + LEAD))
    waiting = sum(slot.sent_at is None for slot in ahead)
    return last_sent + spacing * (1 + waiting)


def count_ours(
    slots: Iterable[RateLimitSlot], trip: float, allowance: Allowance, now: float
) -> int:
    """Count our requests that an answer may count which came now and took `trip` seconds."""
    return sum(
        slot.sent_at is not None
        and slot.sent_at <= now - allowance.credit
        and allowance.free_at(slot, now) >= now - trip + MARGIN
        for slot in slots
    )
