"""Here: what all processes know of an actor: pauses, other clients that use it, 429s of our own.

Not here: slots (policy, rows). Without I/O or clock. Times are seconds of the clock that the
processes share.
"""

from pipelines.metadata.tables import RateLimitActor

RECENT_SECONDS = 3  # for which one sighting of other clients counts, the second begun included
REMEMBERED_SECONDS = 45  # of so many seconds the second-highest number is left free
CAUTION_SECONDS = 60.0  # after an unexplained 429; doubled by each further one
LONGEST_CAUTION = 3600.0
CAUTION_FORGOTTEN = 86400.0  # after so long without a 429 the first caution is short again
LONGEST_WAIT = 300.0  # a run that would have to wait longer ends
LONGEST_PAUSE = 7 * 86400.0  # a Retry-After is remembered for so long


def pause(state: RateLimitActor, seconds: float, now: float, unix_now: float) -> None:
    """Let nobody send for so long (Retry-After), at most 7 days; the longest pause holds."""
    seconds = min(seconds, LONGEST_PAUSE)
    if now + seconds > state.blocked_until:
        state.blocked_until = now + seconds
        state.blocked_until_unix = unix_now + seconds


def change_clock(state: RateLimitActor, name: str, now: float, unix_now: float) -> None:
    """Keep a pause after a restart of the machine: only Unix time tells what remains of it."""
    remaining = min(state.blocked_until_unix - unix_now, LONGEST_PAUSE)
    state.clock = name
    state.blocked_until = now + remaining
    state.caution_until = 0.0
    state.caution_seconds = 0.0


def expected_others(state: RateLimitActor, now: float) -> int:
    """Return how many requests of other clients per window to expect."""
    recent = _counts(state, now, RECENT_SECONDS).values()
    remembered = sorted(_counts(state, now, REMEMBERED_SECONDS).values())
    second_highest = remembered[-2] if len(remembered) > 1 else 0
    return max([second_highest, *recent])


def see_others(state: RateLimitActor, count: int, now: float, *, is_full: bool) -> None:
    """Remember how many requests of other clients an answer showed.

    Refused requests of others are not counted. So where the window is full, one more is left free
    for a moment; where it is not used, not again as long as sightings are remembered.
    """
    counts = _counts(state, now, REMEMBERED_SECONDS)
    if is_full and count >= max(counts.values(), default=0):
        count += 1
    second = str(int(now))
    counts[second] = max(count, counts.get(second, 0))
    # Always a new dict: whether the row has to be written is seen by comparing.
    state.others = counts


def be_cautious(state: RateLimitActor, sent_at: float, now: float) -> None:
    """Slow down after a 429 that other clients do not explain, for longer each time.

    Refusals of requests that were under way when the last caution began are the same incident.
    """
    began = state.caution_until - state.caution_seconds
    if state.caution_seconds and sent_at <= began:
        return
    seconds = 2 * state.caution_seconds
    if now > state.caution_until + CAUTION_FORGOTTEN:
        seconds = 0.0
    state.caution_seconds = min(max(CAUTION_SECONDS, seconds), LONGEST_CAUTION)
    state.caution_until = now + state.caution_seconds


def _counts(state: RateLimitActor, now: float, period: float) -> dict[str, int]:
    """Return the requests of other clients that were seen in the last seconds, by second."""
    return {
        second: count for second, count in state.others.items() if 0 <= now - int(second) <= period
    }
