"""One process: pace, failures, cancelled waits, Retry-After, clocks that are set."""

import asyncio
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from pipelines.core.errors import Postponed
from pipelines.rate_limit.limiter import LimitOptions, forget_block
from tests.rate_limit.simulated import EPOCH, Path, World, now, run

MARGIN = 0.002


def test_without_latency_only_the_margin_is_lost(world: World) -> None:
    run(world.process().read_lists(60))
    assert world.service.refused == []
    assert world.service.span() == pytest.approx(11 * (1 + MARGIN), abs=1e-4)


def test_latency_is_paid_for_the_first_requests_only(world: World) -> None:
    world.path = Path(0.2)

    async def main() -> None:
        process = world.process()
        await process.read_lists(120)
        sent = [at for at, _ in world.service.admitted[30:]]
        # A window is 1 s + margin + doubt: 2 s / k of the shortest round trip, k from 30 on.
        assert sent[-1] - sent[0] <= (len(sent) - 1) / 5 * (1 + MARGIN + 2 * 0.4 / 30)

    run(main())
    assert world.service.refused == []


def test_pages_are_requested_ahead_only_where_latency_leaves_room(world: World) -> None:
    async def reads_one_list(latency: float) -> float:
        world.path = Path(latency / 2)
        process = world.process()
        begun = now()
        await process.read(100)
        return now() - begun

    assert run(reads_one_list(0.0)) == pytest.approx(19 * (1 + MARGIN), abs=0.01)
    assert run(reads_one_list(0.8)) <= 24  # one after the other: 80 s


def test_a_share_for_good_is_never_exceeded(world: World) -> None:
    world.options = LimitOptions(max_requests_per_window=2)
    run(world.process().read_lists(12))
    sent = [at for at, _ in world.service.admitted]
    assert all(later - one > 1 for one, later in zip(sent, sent[2:], strict=False))
    assert world.service.span() == pytest.approx(5 * (1 + MARGIN), abs=1e-4)


def test_a_failed_request_holds_its_slot_for_one_window(world: World) -> None:
    async def main() -> list[float]:
        process = world.process()
        await asyncio.gather(*(process.ask(fails=number == 0) for number in range(5)))
        await process.ask()
        return [at for at, _ in world.service.admitted]

    sent = run(main())
    assert sent[5] - sent[0] == pytest.approx(1 + MARGIN)


def test_refused_credentials_hold_a_slot_as_answers_do(world: World) -> None:
    async def main() -> float:
        process, begun = world.process(), now()
        await asyncio.gather(*(process.ask(status=401) for _ in range(6)))
        return now() - begun

    assert run(main()) == pytest.approx(1 + MARGIN)


def test_a_cancelled_wait_gives_its_slot_back(world: World) -> None:
    async def main() -> None:
        process = world.process()
        await asyncio.gather(*(process.ask() for _ in range(5)))
        waiting = [asyncio.create_task(process.ask()) for _ in range(3)]
        for seconds, task in zip((0.1, 0.885, 0.005), waiting, strict=True):
            await asyncio.sleep(seconds)  # the second has taken its slot and not sent
            task.cancel()
        begun = now()
        await asyncio.gather(*(process.ask() for _ in range(5)))
        assert now() - begun == pytest.approx(0.012, abs=1e-4)

    run(main())
    assert len(world.service.admitted) == 10


def test_a_request_cancelled_under_way_may_have_arrived(world: World) -> None:
    world.path = Path(0.1)

    async def main() -> float:
        process = world.process()
        asked = [asyncio.create_task(process.ask()) for _ in range(5)]
        await asyncio.sleep(0.15)
        asked[0].cancel()
        await asyncio.gather(*asked[1:])
        await process.ask()
        return world.service.admitted[5][0] - world.service.admitted[0][0]

    assert run(main()) == pytest.approx(0.15 + 1 + MARGIN, abs=1e-4)  # one window from 0.15 s


def test_the_limit_is_learned_from_the_actors_answers(world: World) -> None:
    world.service.limit = 10
    run(world.process().read_lists(102))
    assert world.service.refused == []
    assert world.service.span() <= 10.1
    world.service.limit = 1
    world.service.admitted.clear()

    async def refused() -> None:  # the limit of our address
        process = world.process()
        for _ in range(11):
            await process.ask(status=401)

    run(refused())
    assert world.process().limiter._shared.limit == 5


def test_a_retry_after_holds_for_everybody_and_can_be_forgotten(world: World) -> None:
    async def main() -> None:
        first, second = world.process(), world.process()
        first.limiter.block(30)
        first.limiter.block(20)
        begun = now()
        await second.ask()
        assert now() - begun == pytest.approx(30)
        first.limiter.block(30)
        waiting = asyncio.create_task(second.ask())
        await asyncio.sleep(5.2)
        forget_block(world.metadata, world.actor)
        await waiting
        assert now() - begun == pytest.approx(35.5, abs=0.5)

    run(main())


def test_a_longer_wait_than_a_run_may_take_is_raised(world: World) -> None:
    async def main() -> None:
        process = world.process()
        process.limiter.block(10**9)
        with pytest.raises(Postponed) as raised:
            await process.ask()
        assert raised.value.until == datetime.fromtimestamp(EPOCH + now() + 7 * 86400, UTC)
        await asyncio.sleep(7 * 86400 - 5)
        await process.ask()

    run(main())


def test_a_retry_after_that_comes_while_a_request_waits_stops_it(world: World) -> None:
    async def main() -> None:
        process = world.process()
        await asyncio.gather(*(process.ask() for _ in range(5)))
        waiting = asyncio.create_task(process.ask())
        await asyncio.sleep(0.99)  # it has its slot for 12 ms later
        process.limiter.block(7)
        begun = now()
        await waiting
        assert now() - begun == pytest.approx(7)

    run(main())


@pytest.mark.parametrize(
    ("step", "latency"), [(-86400, 0.4), (-0.7, 0), (-0.1, 0.4), (0.1, 0), (0.7, 0.4), (86400, 0)]
)
def test_a_clock_that_is_set_makes_us_late_by_a_window(
    world: World, step: float, latency: float
) -> None:
    world.path = Path(latency / 2)

    async def main() -> None:
        reading = asyncio.create_task(world.process().read_lists(45))
        await asyncio.sleep(4.3)
        world.clock.offset += step
        await reading

    run(main())
    assert world.service.refused == []
    moments = [at for at, _ in world.service.admitted]
    assert max(later - one for one, later in pairwise(moments)) < 2.2 + latency
    assert world.service.span() < 10.5 + 2 * latency


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_clock_that_is_set_does_not_shorten_a_retry_after(world: World, step: float) -> None:
    async def main() -> float:
        process, begun = world.process(), now()
        process.limiter.block(20)
        waiting = asyncio.create_task(process.ask())
        await asyncio.sleep(5)
        world.clock.offset += step
        await asyncio.sleep(1)
        await asyncio.gather(waiting, world.process().ask())
        return now() - begun

    assert run(main()) == pytest.approx(20, abs=0.01)


def test_a_429_of_our_own_is_answered_with_caution(world: World) -> None:
    world.path = Path(0.2)

    async def main() -> None:
        process = world.process()
        await process.read_lists(60)
        world.path = Path(0.01)  # a shorter way: the credit was for the longer one
        begun = now()
        await process.read_lists(90)
        cautious = [at for at, _ in world.service.admitted if at > begun + 3]
        assert all(later - one > 0.205 for one, later in pairwise(cautious))
        assert all(at < begun + 1.5 for at, _ in world.service.refused)
        await asyncio.sleep(60)
        begun = now()
        await process.read_lists(60)
        assert now() - begun < 11.4  # the usual pace again

    run(main())
    assert 0 < len(world.service.refused) <= 5
    assert world.service.early == 0
