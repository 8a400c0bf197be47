"""The request budget against an exact sliding log of arrivals, in virtual time."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.api.budget import Budget
from pipelines.api.rule import MARGIN
from pipelines.api.terms import Terms
from tests import virtual
from tests.virtual import CLOCK, seconds

LATENCIES = st.one_of(st.just(0.0), st.floats(0, 0.01), st.floats(0, 3))
FATES = ("answered", "reset", "never arrived", "cancelled")


@dataclass(frozen=True)
class Trip:
    """One request: when it is wanted, how long it travels there and back, and how it ends."""

    start: float
    there: float
    back: float
    fate: str


TRIPS = st.lists(
    st.builds(Trip, st.floats(0, 4), LATENCIES, LATENCIES, st.sampled_from(FATES)), max_size=40
)


@dataclass
class Server:
    """Takes requests as they arrive; `sent` is in the order in which slots were given."""

    budget: Budget
    arrivals: list[float] = field(default_factory=list)
    sent: list[tuple[int, float]] = field(default_factory=list)

    async def travel(self, number: int, trip: Trip) -> None:
        await asyncio.sleep(trip.start)
        async with self.budget.slot():
            self.sent.append((number, seconds()))
            await asyncio.sleep(trip.there)
            if trip.fate == "never arrived":
                raise ConnectionRefusedError
            self.arrivals.append(seconds())
            await asyncio.sleep(trip.back)
            if trip.fate == "reset":
                raise ConnectionResetError

    async def serve(self, trips: Sequence[Trip]) -> None:
        """Run the trips; a cancelled one ends wherever it is, waiting or on its way."""
        loop = asyncio.get_running_loop()
        tasks = [asyncio.create_task(self.travel(*each)) for each in enumerate(trips)]
        for task, trip in zip(tasks, trips, strict=True):
            if trip.fate == "cancelled":
                loop.call_later(trip.start + trip.back, self.cancel, task)
        await asyncio.gather(*tasks, return_exceptions=True)

    def cancel(self, task: asyncio.Task[None]) -> None:
        task.cancel()


def assert_never_more(arrivals: Sequence[float], limit: int, window: float) -> None:
    ordered = sorted(arrivals)
    for first, one_more in zip(ordered, ordered[limit:], strict=False):
        assert one_more - first > window


@settings(max_examples=400)
@given(TRIPS, st.integers(1, 6), st.sampled_from([0.1, 1.0, 2.5]))
def test_no_window_ever_holds_more_arrivals_than_the_limit(
    trips: list[Trip], limit: int, window: float
) -> None:
    async def main() -> Server:
        server = Server(Budget(CLOCK, Terms(limit, window)))
        await server.serve(trips)
        return server

    server = virtual.run(main())
    assert_never_more(server.arrivals, limit, window)
    expected = sum(trip.fate in {"answered", "reset"} for trip in trips)
    assert len(server.arrivals) >= expected


@given(TRIPS, st.integers(1, 6))
def test_whatever_happened_no_slot_is_lost(trips: list[Trip], limit: int) -> None:
    async def main() -> list[float]:
        server = Server(Budget(CLOCK, Terms(limit, 1.0)))
        await server.serve(trips)
        await asyncio.sleep(1.0 + 2 * MARGIN)
        server.sent.clear()
        rest = [Trip(0, 0.5, 0.5, "answered")] * limit
        begun = seconds()
        await server.serve(rest)
        return [sent - begun for _, sent in server.sent]

    assert virtual.run(main()) == [0.0] * limit


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=30), st.integers(1, 4), LATENCIES)
def test_first_come_first_served(starts: list[int], limit: int, latency: float) -> None:
    trips = [Trip(start / 1000, latency, 0.0, "answered") for start in starts]

    async def main() -> list[int]:
        server = Server(Budget(CLOCK, Terms(limit, 0.5)))
        await server.serve(trips)
        return [number for number, _ in server.sent]

    served = [starts[number] for number in virtual.run(main())]
    assert served == sorted(starts)


@pytest.mark.parametrize("limit", [1, 5, 50])
@pytest.mark.parametrize("round_trip", [0.0, 0.002, 0.08, 0.3, 2.0])
def test_a_steady_path_uses_all_but_its_round_trip(limit: int, round_trip: float) -> None:
    bursts = 10  # each is as the one before
    trips = [Trip(0, round_trip / 2, round_trip / 2, "answered")] * (limit * bursts)

    async def main() -> float:
        server = Server(Budget(CLOCK, Terms(limit, 1.0)))
        await server.serve(trips)
        return max(server.arrivals) - min(server.arrivals)

    # W / (W + round trip + margin) of the allowance: limit requests in each such span.
    optimum = (bursts - 1) * 1.0
    used = optimum / virtual.run(main())
    assert used == pytest.approx(1.0 / (1.0 + round_trip + MARGIN), rel=1e-6)


BLOCKS = st.lists(st.tuples(st.floats(0, 5), st.floats(0, 4)), max_size=6)


@given(TRIPS, BLOCKS)
def test_nothing_is_sent_while_a_block_lasts(
    trips: list[Trip], blocks: list[tuple[float, float]]
) -> None:
    async def main() -> tuple[float, Server]:
        server = Server(Budget(CLOCK, Terms(5, 1.0)))
        begun, loop = seconds(), asyncio.get_running_loop()
        for at, length in blocks:
            loop.call_later(at, server.budget.block, length)
        await server.serve(trips)
        return begun, server

    begun, server = virtual.run(main())
    for _, sent in server.sent:
        for at, length in blocks:
            # A timer may fire a nanosecond early, and a block of that instant come second.
            assert not begun + at + 1e-6 < sent < begun + at + length - 1e-6


@given(st.lists(st.floats(0, 100), min_size=1, max_size=5))
def test_a_shorter_block_never_shortens_a_longer_one(lengths: list[float]) -> None:
    async def main() -> float:
        budget = Budget(CLOCK, Terms(5, 1.0))
        for length in lengths:
            budget.block(length)
        async with budget.slot() as waited:
            return waited

    assert virtual.run(main()) == pytest.approx(max(lengths), abs=1e-6)


@pytest.mark.parametrize(
    ("learned", "burst"), [([8], 8), ([2], 2), ([1], 1), ([0], 5), ([-3], 5), ([8, 3], 3)]
)
def test_the_stated_limit_is_adopted_up_and_down(learned: list[int], burst: int) -> None:
    async def main() -> list[float]:
        server = Server(Budget(CLOCK, Terms(5, 1.0)))
        for limit in learned:
            server.budget.learn(limit)
        await server.serve([Trip(0, 0, 0, "answered")] * 20)
        return server.arrivals

    arrivals = virtual.run(main())
    assert arrivals.count(arrivals[0]) == burst
    assert_never_more(arrivals, burst, 1.0)


def test_a_limit_learned_under_way_counts_what_was_sent_before() -> None:
    async def main() -> list[float]:
        server = Server(Budget(CLOCK, Terms(5, 1.0)))
        asyncio.get_running_loop().call_later(0.5, server.budget.learn, 2)
        await server.serve([Trip(0.1 * number, 0.05, 0.05, "answered") for number in range(12)])
        return [arrival - 1000 for arrival in server.arrivals]

    arrivals = virtual.run(main())
    assert len([arrival for arrival in arrivals if arrival < 0.5]) == 5
    assert_never_more(arrivals[3:], 2, 1.0)


def test_a_window_of_nothing_leaves_the_margin() -> None:
    async def main() -> float:
        server = Server(Budget(CLOCK, Terms(1, 0.0)))
        await server.serve([Trip(0, 0, 0, "answered")] * 100)
        return seconds()

    assert virtual.run(main()) == pytest.approx(1000 + 99 * MARGIN)


def test_the_wait_is_told() -> None:
    async def main() -> list[float]:
        budget = Budget(CLOCK, Terms(2, 1.0))
        waits = []
        for _ in range(5):
            async with budget.slot() as waited:
                waits.append(round(waited, 3))
        return waits

    assert virtual.run(main()) == [0, 0, 1.001, 0, 1.001]


def test_the_loop_of_these_tests_sees_a_deadlock() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="deadlock"):
        virtual.run(main())
