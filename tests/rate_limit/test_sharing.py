"""Several processes of one actor, and other clients that use it."""

import asyncio

import pytest

from pipelines.rate_limit import store
from pipelines.rate_limit.memory import Memory
from tests.rate_limit.conftest import Owner
from tests.rate_limit.simulated import EPOCH, Path, Process, World, now, run, send_evenly

MARGIN = 0.002


@pytest.mark.parametrize("path", [Path(), Path(0.2), Path(0.075, 0.03)])
def test_processes_share_the_whole_limit_by_turns(
    world: World, owners: list[Owner], path: Path
) -> None:
    world.path = path

    async def main() -> list[float]:
        async def read(number: int) -> float:
            await world.process(owners[number].name, seed=number).read_lists(30)
            return now()

        return list(await asyncio.gather(*(read(number) for number in range(4))))

    ended = run(main())
    assert world.service.refused == []
    # Some have the credit of ten round trips earlier: with 75 requests each it is below 2 s.
    assert max(ended) - min(ended) < 3.2
    at_most = {Path(): 1.003, Path(0.2): 1.25, Path(0.075, 0.03): 1.15}[path]  # 24 windows
    assert world.service.span() <= 23.8 * at_most + 0.01


def test_a_busy_machine_makes_us_late_and_never_early(world: World, owners: list[Owner]) -> None:
    world.metadata.interruption = 0.03

    async def main() -> None:
        processes = [world.process(each.name) for each in owners[:2]]
        await asyncio.gather(*(process.read_lists(60) for process in processes))

    run(main())
    assert world.service.refused == []


def test_a_process_that_comes_later_waits_its_turn_only(world: World, owners: list[Owner]) -> None:
    async def main() -> float:
        reading = asyncio.create_task(world.process(owners[0].name).read_lists(60))
        await asyncio.sleep(3.5)
        begun = now()
        await world.process(owners[1].name).ask()
        waited = now() - begun
        await reading
        return waited

    assert run(main()) <= 1


def test_a_killed_process_frees_the_queue_at_once_and_its_request_after_the_deadline(
    world: World, owners: list[Owner], mortal: Owner
) -> None:
    async def main() -> None:
        process = world.process(owners[0].name)
        unix = EPOCH + now()
        with world.metadata.transaction() as session:
            for sent_at in (None, unix + 1e6, unix):  # waits, has its slot, is under way
                store.add_row(session, world.actor, mortal.name, sent_at)
        assert await seconds_to_read(process, 12) == pytest.approx(5, abs=0.1)  # 2 per second
        mortal.kill()
        begun = now()
        assert await seconds_to_read(process, 60) == pytest.approx(15, abs=0.6)  # 4 per second
        await asyncio.sleep(begun + 62 - now())
        assert await seconds_to_read(process, 30) == pytest.approx(5, abs=0.1)  # 5 per second

    run(main())


async def seconds_to_read(process: Process, requests: int) -> float:
    begun = now()
    await process.read_lists(requests)
    return now() - begun


def test_a_stalled_process_is_not_taken_for_dead(world: World, owners: list[Owner]) -> None:
    async def main() -> None:
        unix = EPOCH + now()
        with world.metadata.transaction() as session:
            for _ in range(5):
                store.add_row(session, world.actor, owners[1].name, unix)
        asking = asyncio.create_task(world.process(owners[0].name).ask())
        await asyncio.sleep(200)
        assert not asking.done()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        with world.metadata.transaction() as session:
            assert len(store.read_rows(session, world.actor)) == 5

    run(main())


def test_a_process_that_was_taken_for_dead_queues_again(world: World) -> None:
    async def main() -> None:
        process = world.process()
        await asyncio.gather(*(process.ask() for _ in range(5)))
        waiting = asyncio.create_task(process.ask())
        await asyncio.sleep(0.1)
        with world.metadata.transaction() as session:
            rows = store.read_rows(session, world.actor)
            store.delete_rows(session, [row.number for row in rows if row.sent_at is None])
        await asyncio.gather(waiting, *(process.ask() for _ in range(4)))
        await process.ask()

    run(main())
    assert world.service.refused == []
    assert len(world.service.admitted) == 11


def test_nobody_retries_early_in_a_storm(world: World, owners: list[Owner]) -> None:
    world.path = Path(0.05)

    async def main() -> float:
        world.service.storm = now() + 30
        processes = [world.process(each.name) for each in owners[:2]]
        await asyncio.gather(*(each.read_lists(60) for each in processes))
        return now() - world.service.storm

    # The few requests that go on after the storm are at caution's pace: 0.21 s apart.
    assert run(main()) < 3 + 0.21 * 120
    assert world.service.early == 0
    assert 10 <= len(world.service.refused) <= 60


@pytest.mark.parametrize("latency", [0.0, 0.15, 0.4])
def test_another_client_is_left_its_share(world: World, latency: float) -> None:
    world.path = Path(latency / 2, 0.002)

    async def main() -> None:
        begun = now()
        other = asyncio.create_task(send_evenly(world, 0.338, begun + 62))
        await asyncio.sleep(1)
        reading = asyncio.create_task(world.process().read_lists(240))
        await other
        reading.cancel()
        since, until = begun + 10, begun + 60
        theirs, ours = (
            sum((who == "other") == is_other and since <= at < until for at, who in admitted)
            for is_other in (True, False)
            for admitted in [world.service.admitted]
        )
        rest = 5 * (until - since) - theirs
        assert ours >= 0.9 * rest
        assert sum(since <= at for at, _ in world.service.refused) <= 1
        await asyncio.gather(reading, return_exceptions=True)

    run(main())


def test_the_whole_limit_is_used_again_after_another_client_left(world: World) -> None:
    async def main() -> None:
        process = world.process()
        await asyncio.gather(send_evenly(world, 0.338, now() + 10), process.read_lists(15))
        await asyncio.sleep(46)
        begun = now()
        await process.read_lists(30)
        assert now() - begun <= 5 * (1 + MARGIN) + 0.01

    run(main())


def test_a_memory_survives_the_database(world: World) -> None:
    memory = Memory(
        limit=7,
        blocked_until=1.5,
        caution_until=2.5,
        caution_seconds=60.0,
        others=((1, 2), (5, 1)),
        brief=((7, 3),),
        probed=2,
        probed_at=3.5,
    )
    with world.metadata.transaction() as session:
        assert store.read_memory(session, world.actor) == Memory()
        store.write_memory(session, world.actor, memory)
    with world.metadata.transaction() as session:
        assert store.read_memory(session, world.actor) == memory
