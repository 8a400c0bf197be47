"""The budget on paths of all kinds, simulated in virtual time against an exact sliding log.

What the path is like is drawn here; the budget is the real one. 600 s each, three times, with
always more to ask for than may be asked; and runs of 300 requests at a jitter of 40 %.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.machine import table
from pipelines.api.budget import Budget
from pipelines.api.terms import Said, Terms
from tests import virtual
from tests.virtual import CLOCK, seconds

LIMIT, WINDOW, SECONDS, SEEDS, WORKERS = 5, 1.0, 600.0, 3, 12
JITTERY_RUNS, JITTERY_REQUESTS = 100, 300
# Seconds of one way, drawn anew each time, `age` seconds after the beginning.
Way = Callable[[random.Random, float], float]


def _lan(chance: random.Random, _age: float) -> float:
    return 0.001 + chance.expovariate(1 / 0.0002)


def _wan(chance: random.Random, _age: float) -> float:
    return 0.043 + chance.expovariate(1 / 0.001)


def _wifi(chance: random.Random, _age: float) -> float:
    return 0.060 + chance.gammavariate(2.0, 0.0075)


def _spikes(chance: random.Random, age: float) -> float:
    spike = chance.uniform(0.1, 0.8) if chance.random() < 0.02 else 0.0  # noqa: PLR2004
    return _wan(chance, age) + spike


def _route_change(chance: random.Random, age: float) -> float:
    """The way becomes shorter twice and longer once: shorter is what the tight rule is not told."""
    least = (0.055, 0.043, 0.030, 0.055)[int(4 * age / SECONDS) % 4]
    return least + chance.expovariate(1 / 0.001)


def _jittery(latency: float) -> Way:
    return lambda chance, _age: latency / 2 + chance.uniform(0, 0.2 * latency)


PATHS: dict[str, Way] = {
    "LAN 2 ms": _lan,
    "WAN 86 ms": _wan,
    "Wi-Fi 150 ms": _wifi,
    "WAN + spikes": _spikes,
    "route change": _route_change,
}


@dataclass
class Trial:
    """A budget, a path and a service that counts exactly; `tight` lets the budget hear answers."""

    way: Way
    chance: random.Random
    tight: bool
    log: deque[float] = field(default_factory=deque)
    admitted: int = 0
    refused: int = 0

    def __post_init__(self) -> None:
        self.budget = Budget(CLOCK, Terms(LIMIT, WINDOW))
        self.begun = seconds()

    @property
    def age(self) -> float:
        """Seconds since the beginning."""
        return seconds() - self.begun

    async def ask(self) -> None:
        """Send one request there and back."""
        async with self.budget.slot():
            sent = seconds()
            await asyncio.sleep(self.way(self.chance, self.age))
            said = self._answer(sent)
            await asyncio.sleep(self.way(self.chance, self.age))
            if self.tight:
                self.budget.hear(said)
            elif said.pause:
                self.budget.block(said.pause)

    async def work(self, count: float) -> None:
        """Ask again and again, so often or for the whole time."""
        while self.admitted < count and self.age < SECONDS:
            await self.ask()

    def _answer(self, sent: float) -> Said:
        now = seconds()
        while self.log and now - self.log[0] > WINDOW:
            self.log.popleft()
        if len(self.log) >= LIMIT:
            self.refused += 1
            return Said(429, sent, LIMIT, 0, pause=1.0)
        self.log.append(now)
        self.admitted += 1
        return Said(200, sent, LIMIT, LIMIT - len(self.log))


def _tried(way: Way, seed: int, count: float = float("inf"), *, tight: bool = True) -> Trial:
    async def main() -> Trial:
        trial = Trial(way, random.Random(seed), tight)  # noqa: S311 repeatable
        await asyncio.gather(*(trial.work(count) for _ in range(WORKERS)))
        trial.budget.close()
        return trial

    return virtual.run(main())


def _steady(name: str, *, tight: bool) -> str:
    trials = [_tried(PATHS[name], seed, tight=tight) for seed in range(SEEDS)]
    admitted = sum(trial.admitted for trial in trials)
    refused = sum(trial.refused for trial in trials)
    used = 100 * admitted / (SEEDS * SECONDS * LIMIT / WINDOW)
    return f"{used:.1f} / {1000 * refused / (admitted + refused):.2g}"


def _short(latency: float) -> list[object]:
    trials = [_tried(_jittery(latency), seed, JITTERY_REQUESTS) for seed in range(JITTERY_RUNS)]
    met = [trial for trial in trials if trial.refused]
    return [f"{1000 * latency:.0f} ms", JITTERY_RUNS, len(met)]


def measure() -> str:
    """Simulate; return two tables."""
    rules = {"strict": False, "tight + learned gap": True}
    steady = [
        [rule, *(_steady(name, tight=tight) for name in PATHS)] for rule, tight in rules.items()
    ]
    short = [_short(latency) for latency in (0.02, 0.15, 0.4)]
    return (
        table(["use % / 429s per 1,000", *PATHS], steady)
        + f"\n\nRuns of {JITTERY_REQUESTS} requests at a jitter of 40 % of the latency:\n\n"
        + table(["latency", "runs", "runs that met a 429"], short)
    )
