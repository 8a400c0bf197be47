"""Here: the clock that the processes of an actor share, compared with the one of this process.

Not here: which clock that is (`Metadata.now`).
"""

import math

from sqlalchemy import Connection

from pipelines.core.clock import Clock
from pipelines.metadata.engine import Metadata

# On PostgreSQL, a comparison is one of the six statements of a request. Meanwhile two clocks drift
# apart by less than a millisecond.
VALID_SECONDS = 1.0
PRECISE_SECONDS = 0.005  # a comparison that took longer is made again at once


class SharedClock:
    """By how much the shared clock is ahead, in seconds: between `least` and `most`.

    Its time was read between two readings of this process's clock, so nobody knows it exactly.
    """

    def __init__(self, metadata: Metadata, clock: Clock) -> None:
        self._metadata = metadata
        self._clock = clock
        self._valid_until = -math.inf
        self.least = 0.0
        self.most = 0.0

    def compare(self, connection: Connection) -> None:
        """Compare the two clocks, if that was not done a moment ago."""
        before = self._clock.monotonic()
        if before < self._valid_until:
            return
        shared = self._metadata.now(connection, self._clock)
        after = self._clock.monotonic()
        self.most = shared - before
        self.least = shared - after
        is_precise = after - before < PRECISE_SECONDS
        self._valid_until = after + VALID_SECONDS if is_precise else -math.inf
