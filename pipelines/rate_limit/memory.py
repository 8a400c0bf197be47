"""What all processes know of an actor: its limit, other clients that use it, 429s of our own.

Without I/O or clock. Times are Unix seconds, durations seconds.
"""

import math
from dataclasses import dataclass, replace

from pipelines.rate_limit.headers import RateHeaders

RECENT = 2.0  # what other clients sent is left free for so long after one sighting
REMEMBERED_SECONDS = 45  # of so many seconds the second-highest number is left free
CAUTION_SECONDS = 60.0  # after an unexplained 429; doubled by each further one
LONGEST_CAUTION = 3600.0
CAUTION_FORGOTTEN = 86400.0  # after so long without a 429 the first caution is short again
CAUTION_SPACING = 1.05  # of the even distance between requests
EXPLAINED = 5.0  # a 429 is explained by other clients that are seen so soon after it
LONGEST_BLOCK = 7 * 86400.0  # a Retry-After is remembered for so long


@dataclass(frozen=True)
class Memory:
    """What all processes know of an actor. `others` maps a second to the most seen of others in it.

    `recent` is the most that other clients sent in a window, seen at `recent_at`.
    """

    limit: int | None = None
    blocked_until: float = 0.0
    caution_until: float = 0.0
    caution_seconds: float = 0.0
    recent: int = 0
    recent_at: float = 0.0
    others: tuple[tuple[int, int], ...] = ()

    def others_seen(self, now: float) -> int:
        """Return how many requests of other clients per window to expect."""
        recent = self.recent if 0 <= now - self.recent_at <= RECENT else 0
        seen = sorted(count for second, count in self.others if _is_remembered(second, now))
        return max(recent, seen[-2] if len(seen) > 1 else 0)

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
        """Return the memory after a sighting of other clients; it explains a 429 just before.

        A 429 counts for a moment only: the service may make it for another reason, and answers that
        are not refused show other clients soon enough.
        """
        fresh = 0 <= now - self.recent_at <= RECENT
        memory = replace(self, recent=max(count, self.recent if fresh else 0), recent_at=now)
        if refused:
            return memory
        began = self.caution_until - self.caution_seconds
        if self.caution_seconds and 0 <= now - began <= EXPLAINED:
            memory = replace(memory, caution_until=0.0, caution_seconds=0.0)
        seen = {second: most for second, most in self.others if _is_remembered(second, now)}
        seen[int(now)] = max(count, seen.get(int(now), 0))
        return replace(memory, others=tuple(sorted(seen.items())))

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
            return memory.with_others(others, now, refused=answer.is_refused)
    if answer.is_refused and answer.ours >= limit and not memory.others_seen(now):
        return memory.with_caution(answer.sent_at, now)
    return memory


def _is_remembered(second: int, now: float) -> bool:
    return 0 <= now - second < REMEMBERED_SECONDS
