"""What all processes know of an actor: other clients that use it, pauses, 429s of our own.

Without I/O or clock. Times are seconds of the clock that the processes share.
"""

from pipelines.metadata.tables import RateLimitActor

RECENT_SECONDS = 3  # for which one sighting of other clients counts, the second begun included
REMEMBERED_SECONDS = 45  # of so many seconds the second-highest number is left free
CAUTION_SECONDS = 60.0  # after an unexplained 429; doubled by each further one
LONGEST_CAUTION = 3600.0
CAUTION_FORGOTTEN = 86400.0  # after so long without a 429 the first caution is short again
LONGEST_WAIT = 300.0  # a run that would have to wait longer ends
LONGEST_BLOCK = 7 * 86400.0  # a Retry-After is remembered for so long


def block(known: RateLimitActor, seconds: float, now: float, unix_now: float) -> None:
    """Let nobody send for so long (Retry-After), at most 7 days; the longest block holds."""
    seconds = min(seconds, LONGEST_BLOCK)
    if now + seconds > known.blocked_until:
        known.blocked_until = now + seconds
        known.blocked_until_unix = unix_now + seconds


def change_clock(known: RateLimitActor, name: str, now: float, unix_now: float) -> None:
    """Keep a block after a restart of the machine: only Unix time tells what remains of it."""
    remaining = min(known.blocked_until_unix - unix_now, LONGEST_BLOCK)
    known.clock = name
    known.blocked_until = now + remaining
    known.caution_until = known.caution_seconds = 0.0


def expected_others(known: RateLimitActor, now: float) -> int:
    """Return how many requests of other clients per window to expect."""
    recent = _seen(known, now, RECENT_SECONDS).values()
    return max([0, *recent, *sorted(_seen(known, now, REMEMBERED_SECONDS).values())[-2:-1]])


def see_others(known: RateLimitActor, count: int, now: float, *, is_full: bool) -> None:
    """Remember how many requests of other clients an answer showed.

    Refused requests of others are not counted. So where the window is full, one more is left free
    for a moment; where it is not used, not again as long as sightings are remembered.
    """
    seen = _seen(known, now, REMEMBERED_SECONDS)
    count += is_full and count >= max(seen.values(), default=0)
    second = str(int(now))
    known.others = seen | {second: max(count, seen.get(second, 0))}


def be_cautious(known: RateLimitActor, sent_at: float, now: float) -> None:
    """Slow down after a 429 that other clients do not explain, for longer each time.

    Refusals of requests that were under way when the last caution began are the same incident.
    """
    if known.caution_seconds and sent_at <= known.caution_until - known.caution_seconds:
        return
    doubled = 0.0 if now > known.caution_until + CAUTION_FORGOTTEN else 2 * known.caution_seconds
    known.caution_seconds = min(max(CAUTION_SECONDS, doubled), LONGEST_CAUTION)
    known.caution_until = now + known.caution_seconds


def _seen(known: RateLimitActor, now: float, period: float) -> dict[str, int]:
    return {second: n for second, n in known.others.items() if 0 <= now - int(second) <= period}
