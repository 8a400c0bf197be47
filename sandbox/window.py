"""The exact sliding window: a log of admitted arrivals per key ("Limits").

Here: who is admitted, what remains, when the window resets. Not here: HTTP, which key a request
has (admission). Not the ``limits`` package: its moving window reads the wall clock itself, in
three separate calls, and starts a thread every 10 ms; one monotonic reading must decide here.
"""

from collections import deque
from typing import NamedTuple

NANOSECONDS = 1_000_000_000
SWEEP_ABOVE = 4096  # keys: beyond it those with an empty window are forgotten


class Verdict(NamedTuple):
    """The decision on one request, and its window: ``resets_in`` is in nanoseconds from now."""

    admitted: bool
    limit: int
    remaining: int
    resets_in: int

    @property
    def retry_after(self) -> int:
        """Whole seconds after which a request will find room ("Limits", rule 4)."""
        return self.resets_in // NANOSECONDS + 1


class SlidingWindow:
    """At most ``limit`` arrivals of one key in any closed interval of ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self._length = round(seconds * NANOSECONDS)
        self._logs: dict[str, deque[int]] = {}

    def admit(self, key: str, limit: int, now: int) -> Verdict:
        """Decide on an arrival at ``now`` (monotonic nanoseconds) and count it if admitted."""
        log = self._current(key, now)
        admitted = len(log) < limit
        if admitted:
            log.append(now)
        return self._verdict(log, limit, now, admitted=admitted)

    def look(self, key: str, limit: int, now: int) -> Verdict:
        """Show the window's state and use none of it ("Limits", rule 2)."""
        return self._verdict(self._current(key, now), limit, now, admitted=True)

    def _current(self, key: str, now: int) -> deque[int]:
        if len(self._logs) > SWEEP_ABOVE:
            self._logs = {k: log for k, log in self._logs.items() if self._holds(log, now)}
        log = self._logs.setdefault(key, deque())
        while log and now - log[0] > self._length:
            log.popleft()
        return log

    def _holds(self, log: deque[int], now: int) -> bool:
        return bool(log) and now - log[-1] <= self._length

    def _verdict(self, log: deque[int], limit: int, now: int, *, admitted: bool) -> Verdict:
        resets_in = log[0] + self._length - now if log else 0
        return Verdict(admitted, limit, limit - len(log), resets_in)
