"""Pages asked for ahead: no schedule makes a false claim, and little is asked in vain."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from pipelines.api import paging
from pipelines.api.before import Before
from pipelines.api.page import Page
from pipelines.api.prefetch import Prefetch, Race
from pipelines.api.reader import Reader
from pipelines.api.source import ALONE
from pipelines.api.stitch import Taken
from pipelines.errors import Unavailable
from pipelines.state.proof import Grade, Proof
from tests import virtual
from tests.api.moving import ANSWER, Change, Churn, Rows, page, still

CLAIMS = {Grade.SNAPSHOT, Grade.COMPLETE, Grade.COMPLETE_BY_COUNT}


@dataclass
class Distant:
    """A list some way off: requests travel, arrive in any order, and each finds its own state."""

    rows: Rows
    limit: int
    chance: Random
    change: Change = still
    ahead: Callable[[], bool] = lambda: True
    failing: float = 0.0
    end: float = float("inf")
    asked: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    shown: list[set[int]] = field(default_factory=list)
    superseded: int = 0
    moments: list[set[int]] = field(default_factory=list)  # the list as each answer shows it
    counted: set[int] | None = None  # the list at the length check that it was counted by
    travelling: int = 0
    wanted: int = -1

    async def fetch(self, offset: int) -> Page:
        self.travelling += 1
        try:
            return await self._answer(offset)
        finally:
            self.travelling -= 1

    async def _answer(self, offset: int) -> Page:
        await asyncio.sleep(self.chance.random())
        self.change(self.rows, len(self.asked))
        self.asked.append(offset)
        self.moments.append(set(self.rows))
        found = self.rows[offset : offset + self.limit]
        read = page(self.rows, offset, self.limit)
        body = b",".join(b"%d" % row for row in found)
        moment = str(len(self.moments) - 1)
        if offset != self.wanted and self.chance.random() < self.failing:
            raise Unavailable("a guess that fails is no news")
        await asyncio.sleep(self.chance.random())
        return replace(read, answer=replace(ANSWER, body=body, request_id=moment))

    async def read(self, before: Before) -> Proof:
        prefetch = Prefetch(self.fetch, self.ahead, self.end)

        async def take(offset: int, step: int) -> Taken:
            self.wanted = offset
            read = await prefetch.page(offset, step)
            self.taken.append(offset)
            keys = read.answer.body.split(b",") if read.rows else []
            self.shown.append({int(key) for key in keys})
            at.append(int(read.answer.request_id or 0))
            return Taken(read, len(self.taken) - 1, keys)

        reader, at = Reader(take, before), list[int]()
        try:
            return await reader.read("id")
        finally:
            self.superseded = reader.superseded
            if reader.superseded:
                self.counted = self.moments[at[reader.superseded]]
            await prefetch.close()

    @property
    def union(self) -> set[int]:
        """The rows that are loaded."""
        return set().union(*self.shown[self.superseded :])


def test_no_schedule_of_changes_and_answers_makes_a_false_claim() -> None:
    async def main() -> Counter[Grade]:
        grades: Counter[Grade] = Counter()
        for seed in range(3000):
            chance = Random(seed)
            churn = Churn(chance, chance.choice([0, 0.1, 0.5, 1]), chance.random(), last=40)
            rows = list(range(chance.randint(0, 40)))
            distant = Distant(rows, chance.choice([5, 8, 10]), chance, churn, failing=0.1)
            proof = await distant.read(Before())
            grades[proof.grade] += 1
            assert proof.grade not in CLAIMS or churn.lived <= distant.union, seed
            assert proof.rows == len(distant.union), seed
        assert len(asyncio.all_tasks()) == 1  # nothing is left on its way
        return grades

    grades = virtual.run(main())
    assert grades[Grade.COMPLETE] > 2000
    assert set(grades) <= CLAIMS | {Grade.PARTIAL}


@dataclass
class Tied:
    """Shows rows in another order within ties of so many, beside other changes."""

    churn: Churn
    size: int

    def __call__(self, rows: Rows, number: int) -> None:
        self.churn(rows, number)
        for at in range(0, len(rows), self.size):
            tie = rows[at : at + self.size]
            self.churn.chance.shuffle(tie)
            rows[at : at + self.size] = tie


def test_no_schedule_of_ties_and_answers_makes_a_false_count() -> None:
    """What is asked for ahead shows the list as it was: never on the wrong side of a check."""

    async def main() -> Counter[Grade]:
        grades: Counter[Grade] = Counter()
        for seed in range(300):
            chance = Random(seed)
            churn = Churn(chance, chance.choice([0, 0.05, 0.2]), chance.random(), last=80)
            rows = list(range(chance.randint(40, 80)))
            distant = Distant(rows, 10, chance, Tied(churn, chance.choice([3, 7, 80])))
            proof = await distant.read(Before(chance.choice([0, len(rows)])))
            grades[proof.grade] += 1
            if distant.counted is not None:
                assert distant.counted <= distant.union, seed
                assert proof.places == len(distant.counted), seed
                assert not (distant.union - distant.counted) & set(range(80)), seed
        return grades

    grades = virtual.run(main())
    assert grades[Grade.COMPLETE_BY_COUNT] > 200
    assert grades[Grade.COMPLETE] + grades[Grade.SNAPSHOT] == 0


def test_nothing_else_is_under_way_while_a_page_is_asked_for_alone() -> None:
    async def main(seed: int) -> tuple[int, int]:
        distant = Distant(list(range(100)), 10, Random(seed))
        prefetch = Prefetch(distant.fetch, lambda: True)
        await prefetch.page(0, 10)
        await asyncio.sleep(2)  # both guesses were answered: that is no news of now
        await prefetch.page(10, ALONE)
        assert distant.asked.count(10) == 2
        await prefetch.page(20, 10)
        guesses = distant.travelling
        alone = asyncio.create_task(prefetch.page(50, ALONE))
        await asyncio.sleep(0.001)
        under_way = distant.travelling
        await alone
        assert distant.travelling == 0  # and none was sent meanwhile
        return guesses, under_way

    found = [virtual.run(main(seed)) for seed in range(20)]
    assert max(guesses for guesses, _under_way in found) == 2
    assert {under_way for _guesses, under_way in found} == {1}


@pytest.mark.parametrize("rows", range(80, 140, 7))
@pytest.mark.parametrize("known", [True, False])
def test_a_list_that_keeps_still_costs_at_most_two_requests_more(rows: int, *, known: bool) -> None:
    step = 10 - paging.overlap(10)
    behind = (rows - 10) % step == 0  # a full last page: one request looks behind it
    quiet = 1 + -(-(rows - 10) // step) + behind + 1
    end = rows if known else float("inf")
    distant = Distant(list(range(rows)), 10, Random(rows), end=end)
    proof = virtual.run(distant.read(Before(rows)))
    assert (proof.grade, proof.requests) == (Grade.COMPLETE, quiet)
    pages = range(0, step * (quiet - 2 - behind) + 1, step)
    assert distant.taken == [*pages, *([rows] if behind else []), 0]
    assert len(distant.asked) - quiet <= (0 if known else 2)


def test_looking_ahead_takes_a_third_of_the_time() -> None:
    async def seconds(ahead: bool) -> float:  # noqa: FBT001 a table of two
        distant = Distant(list(range(700)), 10, Random(1), ahead=lambda: ahead)
        begun = virtual.seconds()
        await distant.read(Before())
        return virtual.seconds() - begun

    async def both() -> tuple[float, float]:
        return await seconds(ahead=False), await seconds(ahead=True)

    one_by_one, ahead = virtual.run(both())
    assert ahead < 0.45 * one_by_one


def test_what_there_was_no_time_for_is_guessed_when_there_is() -> None:
    async def main() -> list[int]:
        room = False
        distant = Distant(list(range(100)), 10, Random(7), ahead=lambda: room)
        prefetch = Prefetch(distant.fetch, distant.ahead)
        step = 10 - paging.overlap(10)
        for place in range(2):
            await prefetch.page(place * step, step)
        room = True
        await prefetch.page(2 * step, step)
        await asyncio.sleep(2)  # the longest that a request travels
        await prefetch.close()
        return [offset // step for offset in distant.asked]

    assert sorted(virtual.run(main())) == [0, 1, 2, 3, 4]


def test_a_guess_that_failed_is_asked_for_again_when_it_is_wanted() -> None:
    distant = Distant(list(range(100)), 10, Random(3), failing=1.0)
    proof = virtual.run(distant.read(Before(100)))
    assert proof.grade is Grade.COMPLETE
    assert distant.union == set(range(100))


def test_what_fails_though_it_is_wanted_is_raised() -> None:
    async def fetch(_offset: int) -> Page:
        raise Unavailable("503")

    with pytest.raises(Unavailable, match="503"):
        virtual.run(Prefetch(fetch, lambda: True).page(0))


def test_whoever_stops_waiting_takes_its_requests_back() -> None:
    async def main() -> int:
        distant = Distant(list(range(100)), 10, Random(5))
        reading = asyncio.create_task(distant.read(Before()))
        await asyncio.sleep(4.1)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        return len(asyncio.all_tasks())

    assert virtual.run(main()) == 1


# Rows left by stream, and the one that looks ahead.
RACES: list[tuple[dict[str, float], str | None]] = [
    ({}, None),
    ({"usage": 5.0}, "usage"),
    ({"usage": 5.0, "billing": 7.0}, "billing"),
    ({"usage": 5.0, "billing": float("inf"), "plans": float("inf")}, "billing"),
]


@pytest.mark.parametrize(("left", "longest"), RACES)
def test_one_list_of_several_looks_ahead(left: dict[str, float], longest: str | None) -> None:
    race = Race(left)
    assert [name for name in ("usage", "billing", "plans") if race.longest(name)] == (
        [longest] if longest else []
    )
