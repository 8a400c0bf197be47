"""What the server saw: a second witness of the rate limit, and of what clients asked for.

Here: counts by path and status, the most requests admitted in any window, computed over the
arrivals themselves and not asked of the limiter, and retries that came earlier than a 429 had
told. Not here: deciding anything.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from sandbox.window import NANOSECONDS

MOST_PATHS = 1000  # further ones are counted as one: memory stays bounded
OTHER_PATHS = "(other paths)"


@dataclass
class Tally:
    """The requests of one key; the deque holds no more than one window."""

    admitted: int = 0
    refused: int = 0
    early: int = 0
    free_from: int = 0
    most: int = 0
    first: int | None = None
    last: int | None = None
    recent: deque[int] = field(default_factory=deque)

    def arrive(self, now: int, length: int, *, admitted: bool) -> None:
        """Count an arrival at ``now`` (monotonic nanoseconds) in windows of ``length``."""
        # "Limits", rule 4: clients must not retry earlier, whatever the limiter says by then.
        self.early += now < self.free_from
        if admitted:
            self.admit(now, length)
        else:
            self.refused += 1

    def told(self, free_from: int) -> None:
        """Note that the caller was told to wait until then."""
        self.free_from = max(self.free_from, free_from)

    def admit(self, now: int, length: int) -> None:
        """Count an admitted arrival at ``now`` (monotonic nanoseconds)."""
        self.admitted += 1
        self.first = now if self.first is None else self.first
        self.last = now
        self.recent.append(now)
        while now - self.recent[0] > length:
            self.recent.popleft()
        self.most = max(self.most, len(self.recent))

    def report(self) -> dict[str, Any]:
        """Give the tally as JSON; times are monotonic seconds."""
        return {
            "admitted": self.admitted,
            "refused": self.refused,
            "early_retries": self.early,
            "most_admitted_in_any_window": self.most,
            "first_admitted": _seconds(self.first),
            "last_admitted": _seconds(self.last),
        }


class Statistics:
    """Counts since the start, per caller, per address of unauthenticated callers, per path."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._length = round(window * NANOSECONDS)
        self._callers: dict[str, Tally] = {}
        self._addresses: dict[str, Tally] = {}
        self._answers: dict[str, Counter[str]] = {}

    def arrival(self, key: str, now: int, *, admitted: bool, authenticated: bool) -> Tally:
        """Count the arrival of a request that the limiter decided on; give its key's tally."""
        tallies = self._callers if authenticated else self._addresses
        tally = tallies.setdefault(key, Tally())
        tally.arrive(now, self._length, admitted=admitted)
        return tally

    def reset(self) -> None:
        """Count from zero; whoever was told to wait may ask at once, as far as is counted."""
        for counted in (self._callers, self._addresses, self._answers):
            counted.clear()

    def answer(self, path: str, status: int) -> None:
        """Count an answer."""
        if path not in self._answers and len(self._answers) >= MOST_PATHS:
            path = OTHER_PATHS
        self._answers.setdefault(path, Counter())[str(status)] += 1

    def report(self) -> dict[str, Any]:
        """Give everything as JSON. The top level adds up the authenticated callers alone."""
        tallies = self._callers.values()
        total = Tally(
            admitted=sum(tally.admitted for tally in tallies),
            refused=sum(tally.refused for tally in tallies),
            early=sum(tally.early for tally in tallies),
            most=max((tally.most for tally in tallies), default=0),
            first=min((one.first for one in tallies if one.first is not None), default=None),
            last=max((one.last for one in tallies if one.last is not None), default=None),
        )
        return {
            "window_seconds": self._window,
            **total.report(),
            "callers": {key: tally.report() for key, tally in self._callers.items()},
            "unauthenticated": {key: tally.report() for key, tally in self._addresses.items()},
            "requests": self._answers,
        }


def wait(retry_after: str | None, time: float) -> int:
    """Read a Retry-After, seconds or a date (RFC 9110, section 10.2.3), as nanoseconds from now.

    What is missing or cannot be read asks for no wait that anybody could be early for. ``time`` is
    the Unix time now.
    """
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return int(text) * NANOSECONDS
    try:
        return round((parsedate_to_datetime(text).timestamp() - time) * NANOSECONDS)
    except ValueError:
        return 0


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / NANOSECONDS
