"""Round trips and the tight rule: what a path proves, what it is worth, and when more may go."""

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.api.budget import Budget
from pipelines.api.path import ENOUGH, LEAST_SHARE, MANY, REMEMBERED, SURER, Path
from pipelines.api.terms import Said, Terms
from tests import virtual
from tests.api.test_budget import assert_never_more
from tests.virtual import CLOCK, seconds

# Round trips in ms (repeated to 20), and the seconds by which they free a slot earlier; of the
# first 10 the doubt is the upper quartile's.
CREDITS = [
    ([1], 0.0, 0.0),  # the doubt is greater than the path
    ([50], 0.047, 0.047),
    ([400, 402, 404], 0.397, 0.396),
    ([100, 160, 160], 0.040, 0.040),
    ([10, 100, 100], 0.0, 0.0),
]


def path(trips: list[float]) -> Path:
    known = Path()
    for trip in trips:
        known.add(trip)
    return known


@pytest.mark.parametrize(("trips", "credit", "few"), CREDITS)
def test_a_path_is_worth_its_minimum_less_the_doubt(
    trips: list[int], credit: float, few: float
) -> None:
    many = [trips[number % len(trips)] / 1000 for number in range(MANY)]
    assert path(many).credit == pytest.approx(credit)
    assert path(many[:ENOUGH]).credit == pytest.approx(few)
    assert path(many[: ENOUGH - 1]).credit == 0.0


@given(st.lists(st.floats(0, 2), min_size=1, max_size=30), st.integers(0, 3))
def test_only_the_last_round_trips_count(trips: list[float], more: int) -> None:
    old = path([0.0] * more + [0.25] * (REMEMBERED - len(trips)) + trips)
    last = sorted(([0.0] * more + [0.25] * (REMEMBERED - len(trips)) + trips)[-REMEMBERED:])
    assert old.typical == last[len(last) // 2]
    doubt = LEAST_SHARE * (old.typical - last[0])
    assert old.credit == max(0.0, last[0] - max(0.003, doubt))


@pytest.mark.parametrize(("count", "share"), [(SURER, 1.0), (4 * SURER, 0.5), (600, LEAST_SHARE)])
def test_the_doubt_falls_with_the_root_of_the_number_of_round_trips(
    count: int, share: float
) -> None:
    trips = [(0.4, 0.45, 0.45)[number % 3] for number in range(count)]
    assert path(trips).credit == pytest.approx(0.4 - share * 0.05)


class Wire:
    """A path with a least time each way and some more; keeps the arrivals."""

    def __init__(self, limit: int, there: float, back: float) -> None:
        self.budget = Budget(CLOCK, Terms(limit, 1.0))
        self.there, self.back = there, back
        self.arrivals: list[float] = []

    async def ask(self, more: tuple[float, float], status: int = 200) -> None:
        async with self.budget.slot():
            sent = seconds()
            await asyncio.sleep(self.there + more[0])
            self.arrivals.append(seconds())
            await asyncio.sleep(self.back + more[1])
            self.budget.hear(Said(status, sent))

    async def chain(self, trips: list[tuple[float, float]]) -> None:
        """Ask one after the other until there is no more to ask for."""
        while trips:
            await self.ask(trips.pop())


MORE = st.lists(st.tuples(st.floats(0, 0.0014), st.floats(0, 0.0014)), min_size=ENOUGH, max_size=70)


@settings(max_examples=100)
@given(MORE, st.integers(1, 6), st.floats(0, 0.6), st.floats(0, 0.6))
def test_no_429_while_the_path_stays_within_the_doubt(
    more: list[tuple[float, float]], limit: int, there: float, back: float
) -> None:
    async def main() -> list[float]:
        wire = Wire(limit, there, back)
        await asyncio.gather(*map(wire.ask, more))
        return wire.arrivals

    assert_never_more(virtual.run(main()), limit, 1.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("latency", [0.02, 0.15, 0.4])
def test_no_429_at_a_jitter_of_40_percent(latency: float, seed: int) -> None:
    chance = random.Random(seed)

    async def main() -> list[float]:
        wire = Wire(5, latency / 2, latency / 2)
        most = 0.2 * latency
        trips = [(chance.uniform(0, most), chance.uniform(0, most)) for _ in range(300)]
        for begin in range(0, 300, 6):  # six at once, so that the budget is what they wait for
            await asyncio.gather(*map(wire.ask, trips[begin : begin + 6]))
        return wire.arrivals

    assert_never_more(virtual.run(main()), 5, 1.0)


@pytest.mark.parametrize(("latency", "over"), [(0.0, 0.02), (0.15, 0.03), (0.4, 0.045)])
def test_300_requests_are_near_the_optimum(latency: float, over: float) -> None:
    """Three chains with jitter up to 4 ms each way; the optimum is floor(299 / 5) seconds."""
    chance = random.Random(7)

    async def main() -> list[float]:
        wire = Wire(5, latency / 2, latency / 2)
        trips = [(chance.uniform(0, 0.004), chance.uniform(0, 0.004)) for _ in range(300)]
        await asyncio.gather(*(wire.chain(trips) for _ in range(3)))
        return wire.arrivals

    arrivals = virtual.run(main())
    assert_never_more(arrivals, 5, 1.0)
    assert arrivals[-1] - arrivals[0] < 59 * (1 + over) + latency


# Seconds of latency, requests on their way, whether one more may go.
AHEAD = [
    (0.0, 0, True),
    (0.002, 0, True),
    (0.002, 1, False),
    (0.15, 1, True),
    (0.15, 2, False),
    (0.4, 2, True),
    (0.4, 3, False),
]


@pytest.mark.parametrize(("latency", "travelling", "expected"), AHEAD)
def test_more_may_go_only_where_latency_needs_it(
    latency: float,
    travelling: int,
    expected: bool,  # noqa: FBT001
) -> None:
    async def main() -> bool:
        wire = Wire(5, latency / 2, latency / 2)
        await wire.ask((0, 0))
        await asyncio.sleep(2)
        asked = [asyncio.create_task(wire.ask((9, 9))) for _ in range(travelling)]
        await asyncio.sleep(0.001)
        ahead = wire.budget.ahead()
        for task in asked:
            task.cancel()
        return ahead

    assert virtual.run(main()) is expected


def test_before_the_first_answer_one_request_is_enough() -> None:
    async def main() -> list[bool]:
        wire = Wire(5, 1.0, 1.0)
        before = wire.budget.ahead()
        asked = asyncio.create_task(wire.ask((0, 0)))
        await asyncio.sleep(0.5)
        during = wire.budget.ahead()
        await asked
        return [before, during, wire.budget.ahead()]

    assert virtual.run(main()) == [True, False, True]


def test_a_request_that_was_given_up_may_still_arrive() -> None:
    """Guessed pages are let go of while they travel: nothing is known of when they arrive."""

    async def abandoned(wire: Wire) -> None:
        async with wire.budget.slot():
            asyncio.get_running_loop().call_later(0.2, lambda: wire.arrivals.append(seconds()))
            await asyncio.sleep(0.05)
            raise asyncio.CancelledError

    async def main() -> list[float]:
        wire = Wire(5, 0.2, 0.2)
        await asyncio.gather(*(wire.chain([(0.0, 0.0)] * ENOUGH) for _ in range(3)))
        tasks = [asyncio.ensure_future(abandoned(wire)) for _ in range(5)]
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(wire.chain([(0.0, 0.0)] * 4) for _ in range(5)))
        return wire.arrivals

    arrivals = virtual.run(main())
    assert len(arrivals) == 3 * ENOUGH + 5 + 20
    assert_never_more(arrivals, 5, 1.0)
