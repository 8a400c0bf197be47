"""An actor that somebody else uses too, in virtual time: an exact sliding log with its headers."""

import asyncio
import math
import random
from collections import deque
from dataclasses import dataclass, field

from pipelines.api.budget import Budget
from pipelines.api.terms import Said, Seat, Terms
from tests.virtual import CLOCK, seconds

LIMIT, WINDOW = 5, 1.0
OURS, OTHERS = "ours", "others"


@dataclass
class Actor:
    """What the service counts of one actor; `refused` holds moment and sender of each 429."""

    admitted: list[tuple[float, str]] = field(default_factory=list)
    refused: list[tuple[float, str]] = field(default_factory=list)
    _log: deque[float] = field(default_factory=deque)

    def arrive(self, who: str) -> tuple[int, int, float]:
        """Count an arrival; return status, Remaining and the seconds until the window resets."""
        now = seconds()
        while self._log and now - self._log[0] > WINDOW:
            self._log.popleft()
        full = len(self._log) >= LIMIT
        (self.refused if full else self.admitted).append((now, who))
        if not full:
            self._log.append(now)
        resets_in = math.ceil(now + self._log[0] + WINDOW - now) - math.floor(now)
        return 429 if full else 200, LIMIT - len(self._log), resets_in

    def rate(self, who: str, since: float, until: float) -> float:
        """Return the requests per second that were admitted of one sender."""
        return sum(since <= at < until and by == who for at, by in self.admitted) / (until - since)

    def refusals(self, since: float, until: float) -> int:
        """Count the 429s of everybody."""
        return sum(since <= at < until for at, _ in self.refused)


@dataclass
class Path:
    """Seconds of one way: `least` and up to `jitter` more, drawn anew each time."""

    least: float = 0.002
    jitter: float = 0.002
    seed: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    async def travel(self) -> None:
        await asyncio.sleep(self.least + self._chance.uniform(0, self.jitter))


async def sends_evenly(actor: Actor, path: Path, pause: float, until: float) -> None:
    """Be the other client: ask, wait for the answer, pause; whatever the answer says."""
    while seconds() < until:
        await path.travel()
        actor.arrive(OTHERS)
        await path.travel()
        await asyncio.sleep(pause)


class Sync:
    """One process of ours with some chains of requests; `warnings` holds what it was told."""

    def __init__(self, actor: Actor, path: Path, seat: Seat | None = None) -> None:
        self.warnings: list[str] = []
        self.seat = seat or Seat(foreign=self.warnings.append)
        self.budget = Budget(CLOCK, Terms(LIMIT, WINDOW), self.seat, key=lambda: "host actor")
        self.actor, self.path = actor, path

    async def ask(self) -> None:
        async with self.budget.slot():
            sent = seconds()
            await self.path.travel()
            status, remaining, resets_in = self.actor.arrive(OURS)
            await self.path.travel()
            pause = math.floor(resets_in) + 1.0 if status == 429 else None
            self.budget.hear(Said(status, sent, LIMIT, remaining, pause, resets_in))

    async def chain(self, until: float) -> None:
        while seconds() < until:
            await self.ask()

    async def run(self, until: float, chains: int = 3) -> None:
        """Ask who we are, then read some lists side by side."""
        await self.ask()
        await asyncio.gather(*(self.chain(until) for _ in range(chains)))
        self.budget.close()
