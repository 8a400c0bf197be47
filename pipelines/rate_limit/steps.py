"""Notices when the clock is set while a process runs."""

from dataclasses import dataclass

TOLERANCE = 0.001  # seconds by which two readings of a clock may be apart and show no step


@dataclass
class ClockSteps:
    """Compares a clock that may be set with the monotonic clock of this process.

    An offset lies within an interval, because reading a clock takes time: another process or a
    database's network may come in between.
    """

    count: int = 0  # how often the clock was set
    _least: float | None = None
    _most: float = 0.0

    def observe(self, before: float, time: float, after: float) -> bool:
        """Return whether the clock was set since the last reading.

        `time` is its reading in seconds, `before` and `after` those of the monotonic clock.
        """
        least, most = time - after, time - before
        known = self._least
        stepped = known is not None and (least > self._most + TOLERANCE or most < known - TOLERANCE)
        if known is None or stepped:
            self._least, self._most = least, most
        else:
            self._least, self._most = max(known, least), min(self._most, most)
        self.count += stepped
        return stepped
