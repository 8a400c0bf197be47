"""The learned gap, and which 429s teach it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from sqlalchemy import Engine

from pipelines.api import gap
from pipelines.api.budget import Budget
from pipelines.api.terms import ALONE, Said, Seat, Terms
from pipelines.state.slots import Account
from tests import virtual
from tests.virtual import CLOCK, seconds

FIRST = [0.2, 0.212, 0.22472, 0.2382032, 0.252495392, 0.26764511552, 0.27, 0.27]
HOLDS = [60, 90, 135, 202.5, 303.75, 455.625, 683.4375, 1025.15625]


def test_each_incident_widens_the_gap_and_holds_it_longer() -> None:
    account, gaps, holds = Account("boot"), [], []
    for number in range(8):
        account = gap.raised(account, 0.2, 10.0 * number)
        gaps.append(account.gap)
        holds.append(account.ease_at - 10.0 * number)
    assert gaps == pytest.approx(FIRST)
    assert holds == HOLDS
    for _ in range(9):
        account = gap.raised(account, 0.2, 0.0)
    assert account.gap == pytest.approx(0.27)
    assert account.hold == 3600


def test_the_gap_eases_with_use_and_is_off_in_the_end() -> None:
    account = gap.raised(Account("boot"), 0.2, 0.0)
    assert gap.eased(account, 0.2, 59.9).gap == 0.2
    gaps = []
    now = 60.0
    while account.gap:
        account = gap.eased(account, 0.2, now)
        assert gap.eased(account, 0.2, now + 19.9) == account
        gaps.append(account.gap)
        now += 20
    assert gaps[:2] == pytest.approx([0.196, 0.19208])
    assert gaps[-2] == pytest.approx(0.1, rel=0.02)
    assert account.hold == 60


def test_a_night_without_use_eases_it_by_one_step() -> None:
    account = gap.raised(Account("boot"), 0.2, 0.0)
    assert gap.eased(account, 0.2, 80_000.0).gap == pytest.approx(0.196)


@dataclass
class Line:
    """Requests one after the other, answered at once as told."""

    seat: Seat = ALONE
    sent: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.budget = Budget(CLOCK, Terms(5, 1.0), self.seat)

    async def ask(self, status: int = 200, limit: int | None = 5) -> None:
        async with self.budget.slot():
            self.sent.append(seconds())
            pause = 1.0 if status == 429 else None
            self.budget.hear(Said(status, seconds(), limit, None, pause))

    async def gaps(self, count: int) -> list[float]:
        begun = len(self.sent)
        for _ in range(count):
            await self.ask()
        sent = self.sent[begun:]
        return [round(later - one, 3) for one, later in pairwise(sent)]


# The answers heard first: status and stated limit; the gap of what follows.
HEARD: list[tuple[Sequence[tuple[int, int | None]], float]] = [
    ([(200, 5)], 0.0),
    ([(200, 5), (429, 5)], 0.2),
    ([(429, None)], 0.2),
    ([(200, 5), (429, 5), (429, 5)], 0.212),
    ([(200, 5), (429, 1)], 0.0),  # the bucket of our address
    ([(429, 1)], 0.0),
    ([(200, 1), (429, 1)], 1.0),  # here it is the actor's
    ([(401, 1)], 0.0),
    ([(200, 10), (429, 10)], 0.1),
    ([(429, 10)], 0.1),
]


@pytest.mark.parametrize(("heard", "expected"), HEARD)
def test_what_429s_teach(heard: Sequence[tuple[int, int | None]], expected: float) -> None:
    async def main() -> list[float]:
        line = Line()
        for status, limit in heard:
            await line.ask(status, limit)
            await asyncio.sleep(3)
        begun = len(line.sent)
        for _ in range(4):
            await line.ask(200, None)
        sent = line.sent[begun:]
        return [round(later - one, 3) for one, later in pairwise(sent)]

    gaps = virtual.run(main())
    assert gaps == pytest.approx([expected] * 3, abs=0.002)


def test_429s_of_requests_that_were_on_their_way_together_are_one_incident() -> None:
    async def main() -> list[float]:
        line = Line()

        async def refused() -> None:
            async with line.budget.slot():
                sent = seconds()
                await asyncio.sleep(0.3 + 0.1 * line.budget._travelling)
                line.budget.hear(Said(429, sent, 5, 0, 1.0))

        await asyncio.gather(*(refused() for _ in range(5)))
        await asyncio.sleep(5)
        return await line.gaps(4)

    assert virtual.run(main()) == [0.2, 0.2, 0.2]


def test_a_second_word_about_the_same_429_blocks_longer_and_is_no_second_incident() -> None:
    async def main() -> tuple[float, list[float]]:
        line = Line()
        await line.ask(429)
        line.budget.block(7.0)
        line.budget.block(3.0)
        begun = seconds()
        async with line.budget.slot():
            waited = seconds() - begun
        await asyncio.sleep(5)
        return waited, await line.gaps(4)

    waited, gaps = virtual.run(main())
    assert waited == pytest.approx(7.0)
    assert gaps == [0.2, 0.2, 0.2]


def test_the_next_night_starts_with_what_this_one_learned(ledger: Engine) -> None:
    async def main() -> list[float]:
        tonight = Line(Seat(ledger))
        await tonight.ask(429)
        tonight.budget.close()
        await asyncio.sleep(80_000)
        tomorrow = Line(Seat(ledger))
        gaps = await tomorrow.gaps(4)
        tomorrow.budget.close()
        return gaps

    assert virtual.run(main()) == pytest.approx([0.196, 0.196, 0.196], abs=0.003)
