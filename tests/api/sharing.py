"""Several processes of one actor, as the budget sees them: one `Budget` each on one ledger."""

import asyncio
from dataclasses import dataclass, field

from sqlalchemy import Engine

from pipelines.api.budget import Budget
from pipelines.api.lanes import Lane
from pipelines.api.terms import Said, Seat, Terms
from tests.virtual import CLOCK, seconds

TERMS = Terms()


@dataclass
class Service:
    """An exact sliding log of the arrivals of one actor: who asked and when."""

    arrivals: list[tuple[float, str]] = field(default_factory=list)

    @property
    def times(self) -> list[float]:
        return [at for at, _ in self.arrivals]

    def share(self, who: str, since: float, until: float) -> float:
        asked = [name for at, name in self.arrivals if since <= at < until]
        return asked.count(who) / len(asked)


class Process:
    """A process with some chains of requests; `terms` and lane as given."""

    def __init__(
        self, ledger: Engine, service: Service, lane: Lane = Lane.NIGHTLY, terms: Terms = TERMS
    ) -> None:
        self.told: list[tuple[object, str]] = []
        self.foreign: list[str] = []
        seat = Seat(ledger, lane, lambda *news: self.told.append(news), self.foreign.append)
        self.budget = Budget(CLOCK, terms, seat, key=lambda: "host actor")
        self.service, self.lane = service, lane

    async def ask(self, there: float = 0.01, back: float = 0.01) -> float:
        """Ask once; return the seconds waited."""
        async with self.budget.slot() as waited:
            sent = seconds()
            await asyncio.sleep(there)
            self.service.arrivals.append((seconds(), self.lane))
            await asyncio.sleep(back)
            self.budget.hear(Said(200, sent))
        return waited

    async def chain(self, until: float, there: float = 0.01, back: float = 0.01) -> None:
        """Ask one after the other until a moment."""
        while seconds() < until:
            await self.ask(there, back)

    async def chains(self, count: int, until: float, latency: float = 0.02) -> None:
        await asyncio.gather(*(self.chain(until, latency / 2, latency / 2) for _ in range(count)))

    def die(self) -> None:
        """End as by kill -9: the lock goes, everything else stays as it is."""
        self.budget._slots.desk.die()
