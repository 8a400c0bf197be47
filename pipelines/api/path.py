"""The path to the service: its last round trips, and what they prove.

A request that was answered at r had arrived by r less its way back, and the next one needs its way
there: together no less than the shortest round trip. So a slot may be used again that much earlier.
"""

from bisect import bisect_left, insort
from collections import deque
from math import sqrt

REMEMBERED = 600  # round trips: two minutes at 5 a second
ENOUGH = 10  # round trips, before which nothing is proved
MANY = 20  # round trips, before which the median may be too near to the shortest
LEAST_DOUBT = 0.003  # seconds
SURER = 40  # round trips, from which on the shortest is near to the shortest that can be
LEAST_SHARE = 0.4  # of the distance to the median that stays in doubt


class Path:
    """The last round trips, in seconds from sending to the answer's headers.

    A connection's first request has the handshakes in it; the minimum does not mind.
    """

    def __init__(self) -> None:
        self._trips: deque[float] = deque()
        self._ordered: list[float] = []

    def add(self, trip: float) -> None:
        """Remember a round trip, of whatever was answered."""
        if len(self._trips) == REMEMBERED:
            del self._ordered[bisect_left(self._ordered, self._trips.popleft())]
        self._trips.append(trip)
        insort(self._ordered, trip)

    @property
    def known(self) -> bool:
        """Whether there were round trips enough to trust the path."""
        return len(self._ordered) >= ENOUGH

    @property
    def typical(self) -> float:
        """The median round trip; 0 before the first."""
        return self._ordered[len(self._ordered) // 2] if self._ordered else 0.0

    @property
    def longest(self) -> float:
        """The longest round trip of late; 0 before the first."""
        return self._ordered[-1] if self._ordered else 0.0

    @property
    def credit(self) -> float:
        """How much earlier than one window after its answer a slot may be used; 0 at first.

        The doubt is the distance from shortest to median, and falls with the root of their number:
        of 300 runs of 300 requests at a jitter of 40 % of the latency none met a 429; with a
        quarter of it from the start 12 % did. Of few round trips it is the distance to the upper
        quartile: with the median of 10, 2 of 1,200 runs met one, with the quartile none of 3,000.
        """
        if not self.known:
            return 0.0
        shortest, count = self._ordered[0], len(self._ordered)
        usual = self.typical if count >= MANY else self._ordered[3 * count // 4]
        share = max(LEAST_SHARE, sqrt(SURER / max(SURER, count)))
        return max(0.0, shortest - max(LEAST_DOUBT, share * (usual - shortest)))
