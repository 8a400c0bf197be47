"""What all processes know of an actor: its limit, other clients that use it, 429s of our own.

Without I/O or clock. Times are Unix seconds, durations seconds.
"""

import math
from dataclasses import dataclass, replace

from pipelines.rate_limit.headers import RateHeaders

RECENT = 3.0  # seconds for which one sighting of other clients counts, the second begun included
REMEMBERED_SECONDS = 45.0  # of so many seconds the second-highest number is left free
CAUTION_SECONDS = 60.0  # after an unexplained 429; doubled by each further one
LONGEST_CAUTION = 3600.0
CAUTION_FORGOTTEN = 86400.0  # after so long without a 429 the first caution is short again
CAUTION_SPACING = 1.05  # of the even distance between requests
SHARED_SPACING = 0.9  # the same beside other clients: requests that come together hide theirs
EXPLAINED = 5.0  # a 429 is explained by other clients that are seen so soon after it
LONGEST_BLOCK = 7 * 86400.0  # a Retry-After is remembered for so long


Seconds = tuple[tuple[int, int], ...]
"""The most requests of other clients that one second's answers showed, by Unix second."""


@dataclass(frozen=True)
class Memory:
    """What all processes know of an actor.

    `others` is what answers showed of other clients in each second. `brief` counts for a moment
    only: what 429s showed, which the service may make for another reason, and probes. At
    `probed_at` one request more than `probed` was left free.
    """

    limit: int | None = None
    blocked_until: float = 0.0
    caution_until: float = 0.0
    caution_seconds: float = 0.0
    others: Seconds = ()
    brief: Seconds = ()
    probed: int = 0
    probed_at: float = 0.0

    def others_seen(self, now: float) -> int:
        """Return how many requests of other clients per window to expect."""
        seen = _recent(self.others + self.brief, now, RECENT)
        second_highest = sorted(_recent(self.others, now, REMEMBERED_SECONDS))[-2:-1]
        return max([0, *seen, *second_highest])

    def reserve(self, limit: int, window: float, now: float) -> int:
        """Return the requests per window to leave to other clients; one a second stays ours."""
        return max(0, min(self.others_seen(now), limit - max(1, math.ceil(window))))

    def is_cautious(self, now: float) -> bool:
        """Return whether an unexplained 429 still makes us slower."""
        return 0 < self.caution_until - now <= LONGEST_CAUTION

    def with_block(self, until: float, now: float) -> "Memory":
        """Return the memory after a Retry-After; the longest one holds."""
        until = min(until, now + LONGEST_BLOCK)
        return replace(self, blocked_until=max(self.blocked_until, until))

    def with_others(self, count: int, now: float, *, refused: bool) -> "Memory":
        """Return the memory after a sighting of other clients; it explains a 429 just before."""
        if refused:
            return replace(self, brief=_added(self.brief, count, now, RECENT))
        memory = replace(self, others=_added(self.others, count, now, REMEMBERED_SECONDS))
        began = self.caution_until - self.caution_seconds
        if self.caution_seconds and 0 <= now - began <= EXPLAINED:
            memory = replace(memory, caution_until=0.0, caution_seconds=0.0)
        return memory

    def with_probe(self, count: int, now: float) -> "Memory":
        """Return the memory after an answer that shows `count` of others and a full window.

        Requests of others that were refused are not counted. So one more is left free for a moment;
        where it is not used, not again as long as sightings are remembered.
        """
        if count <= self.probed and 0 <= now - self.probed_at < REMEMBERED_SECONDS:
            return self
        brief = _added(self.brief, count + 1, now, RECENT)
        return replace(self, brief=brief, probed=count, probed_at=now)

    def with_caution(self, sent_at: float, now: float) -> "Memory":
        """Return the memory after a 429 that other clients do not explain.

        Refusals of requests that were under way when the last caution began are the same incident.
        """
        began = self.caution_until - self.caution_seconds
        if self.caution_seconds and sent_at <= began:
            return self
        forgotten = now > self.caution_until + CAUTION_FORGOTTEN
        longer = CAUTION_SECONDS if forgotten else 2 * self.caution_seconds
        seconds = min(max(CAUTION_SECONDS, longer), LONGEST_CAUTION)
        return replace(self, caution_until=now + seconds, caution_seconds=seconds)


@dataclass(frozen=True)
class Answer:
    """What an answer says of the limit, and how many of our requests explain it.

    `ours` counts our requests that the service may have had in its window, this one included unless
    it was refused; None if that is not known.
    """

    sent_at: float
    is_refused: bool
    said: RateHeaders
    ours: int | None


def learn(memory: Memory, answer: Answer, default_limit: int, now: float) -> Memory:
    """Return the memory after an answer that speaks of the actor's limit."""
    said = answer.said
    if said.limit and not answer.is_refused:
        memory = replace(memory, limit=said.limit)
    if answer.ours is None:
        return memory
    limit = said.limit or memory.limit or default_limit
    if said.remaining is not None:
        others = limit - said.remaining - answer.ours
        if others > 0:
            memory = memory.with_others(others, now, refused=answer.is_refused)
            is_full = said.remaining == 0 and not answer.is_refused
            return memory.with_probe(others, now) if is_full else memory
    if answer.is_refused and answer.ours >= limit and not memory.others_seen(now):
        return memory.with_caution(answer.sent_at, now)
    return memory


def _recent(seconds: Seconds, now: float, period: float) -> list[int]:
    return [count for second, count in seconds if 0 <= now - second <= period]


def _added(seconds: Seconds, count: int, now: float, period: float) -> Seconds:
    kept = {second: most for second, most in seconds if 0 <= now - second <= period}
    kept[int(now)] = max(count, kept.get(int(now), 0))
    return tuple(sorted(kept.items()))
