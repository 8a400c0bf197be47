"""A night, simulated: runs that queue for what there is a limited number of.

Here: time, pools and queues. Not here: what a run needs of them (growth), what it costs (costs).
"""

import heapq
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from itertools import count


@dataclass
class Pool:
    """So many places of a kind, given in the order in which they are asked for.

    Who asked to be `last` gets one when nobody else waits.
    """

    name: str
    places: int
    taken: int = 0
    busy: float = 0.0  # place-seconds
    waiting: deque["Run"] = field(default_factory=deque)
    last: deque["Run"] = field(default_factory=deque)

    def use(self, until: float) -> float:
        """Return the share of its places that was taken until a moment."""
        return self.busy / (self.places * until) if until else 0.0


@dataclass(frozen=True)
class Take:
    """Wait for a place of a pool, until nobody else does where it is the `last`."""

    pool: Pool
    last: bool = False


@dataclass(frozen=True)
class Give:
    """Give the place back."""

    pool: Pool


# What a run does next: take, give, or let seconds pass.
Run = Generator[Take | Give | float, None, None]


@dataclass
class Night:
    """The simulated time, in seconds from the tick, and what is to happen."""

    now: float = 0.0
    _events: list[tuple[float, int, Run]] = field(default_factory=list)
    _numbers: Callable[[], int] = field(default_factory=lambda: count().__next__)
    _since: dict[tuple[int, str], float] = field(default_factory=dict)

    def simulate(self, runs: Iterable[Run]) -> float:
        """Let all runs come to their end; return when the last one did."""
        for run in runs:
            self._later(run, 0.0)
        while self._events:
            self.now, _, run = heapq.heappop(self._events)
            self._go_on(run)
        return self.now

    def _later(self, run: Run, seconds: float) -> None:
        heapq.heappush(self._events, (self.now + seconds, self._numbers(), run))

    def _go_on(self, run: Run) -> None:
        for step in run:
            if isinstance(step, float):
                self._later(run, step)
                return
            if isinstance(step, Give):
                self._give(step.pool, run)
            elif step.pool.taken < step.pool.places:
                self._take(step.pool, run)
            else:
                (step.pool.last if step.last else step.pool.waiting).append(run)
                return

    def _take(self, pool: Pool, run: Run) -> None:
        pool.taken += 1
        self._since[id(run), pool.name] = self.now

    def _give(self, pool: Pool, run: Run) -> None:
        pool.taken -= 1
        pool.busy += self.now - self._since.pop((id(run), pool.name))
        if queue := pool.waiting or pool.last:
            heir = queue.popleft()
            self._take(pool, heir)
            self._later(heir, 0.0)
