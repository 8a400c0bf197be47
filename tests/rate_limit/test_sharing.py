"""Several processes of one actor, and other clients that use it."""

import asyncio
import logging
from subprocess import Popen

import pytest
from sqlalchemy import update

from pipelines.metadata.tables import RateLimitActor, RateLimitSlot
from pipelines.rate_limit.limiter import LimitOptions, Slot
from tests.rate_limit.conftest import name_of
from tests.rate_limit.simulated import Process, World, now, seconds_of

Owners = list[Popen[bytes]]


async def hang(process: Process) -> None:
    """Send a request that is not answered."""
    async with process.limiter.hold(Slot()):
        await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("latency", "jitter", "at_most"),
    [(0.0, 0.0, 1.003), pytest.param(0.15, 0.06, 1.15, marks=pytest.mark.long)],
)
async def test_processes_share_the_whole_limit_by_turns(
    world: World, owners: Owners, latency: float, jitter: float, at_most: float
) -> None:
    world.latency, world.jitter = latency, jitter
    processes = [world.process(name_of(owner), seed) for seed, owner in enumerate(owners)]
    seconds = await asyncio.gather(*(seconds_of(each.read_lists(30)) for each in processes))
    assert world.service.refused == []
    assert max(seconds) - min(seconds) < 2.1  # each sends 5 in 4 s
    assert world.service.span() <= 23.8 * at_most + 0.01


async def test_slots_are_held_while_their_owner_lives_and_its_request_for_the_deadline(
    world: World, owners: Owners
) -> None:
    process, mortal = world.process(), owners[0]
    with world.metadata.transaction() as session:
        for sent_at in (None, now() + 1e6, now()):  # waits, has its slot, is under way
            session.add(RateLimitSlot(actor=world.actor, owner=name_of(mortal), sent_at=sent_at))
            session.flush()
    await asyncio.sleep(200)  # a process that is stalled is not dead
    assert await seconds_of(process.read_lists(12)) == pytest.approx(5, abs=0.1)  # 2 per second
    mortal.kill()
    mortal.wait()
    begun = now()
    assert await seconds_of(process.read_lists(60)) == pytest.approx(15, abs=0.6)  # 4 per second
    await asyncio.sleep(begun + 62 - now())
    assert await seconds_of(process.read_lists(30)) == pytest.approx(5, abs=0.1)  # 5 per second


@pytest.mark.parametrize("is_other", [True, False])
async def test_a_request_that_hangs_holds_no_slot_but_its_own(
    world: World, owners: Owners, *, is_other: bool
) -> None:
    """Another process, or another connection of this one, waited until it timed out."""
    process, world.latency = world.process(), 0.15
    await process.read_lists(30)
    await asyncio.sleep(1.2)
    hanging = asyncio.create_task(hang(process))
    await process.ask_together(4)
    await asyncio.sleep(1.1)
    other = world.process(name_of(owners[0]) if is_other else "")
    assert await seconds_of(other.ask_together(4)) < 0.2
    hanging.cancel()


async def test_a_wait_for_a_request_of_a_killed_process_is_no_pause_of_the_service(
    world: World, owners: Owners, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pipelines")
    world.options = LimitOptions(max_requests_per_window=1)
    with world.metadata.transaction() as session:
        slot = RateLimitSlot(actor=world.actor, owner=name_of(owners[0]), sent_at=now())
        session.add(slot)
    owners[0].kill()
    owners[0].wait()
    await world.process().ask()
    assert caplog.messages == ["Pause, or no room in the limit: requests go on in 60 s."]


async def test_a_process_that_was_taken_for_dead_queues_again(world: World) -> None:
    process = world.process()
    await process.ask_together()
    waiting = asyncio.create_task(process.ask())
    await asyncio.sleep(0.1)
    with world.metadata.transaction() as session:
        waits = RateLimitSlot.sent_at.is_(None)
        session.execute(update(RateLimitSlot).where(waits).values(held_until=0.0))
    await asyncio.gather(waiting, process.ask_together(4))
    await process.ask()
    assert world.service.refused == []
    assert len(world.service.admitted) == 11


async def test_nobody_retries_early_in_a_storm(world: World, owners: Owners) -> None:
    world.latency, world.service.storm = 0.1, now() + 30
    processes = [world.process(name_of(owner)) for owner in owners[:2]]
    await asyncio.gather(*(process.read_lists(60) for process in processes))
    # The few requests that go on after the storm are at caution's pace: 0.21 s apart.
    assert now() - world.service.storm < 3 + 0.21 * 120
    assert world.service.early == 0
    assert 10 <= len(world.service.refused) <= 60


@pytest.mark.parametrize("latency", [0.0, 0.4])
async def test_another_client_is_left_its_share(world: World, latency: float) -> None:
    world.latency, world.jitter, begun = latency, 0.004, now()

    async def send_evenly() -> None:
        while now() < begun + 62:
            world.service.arrive("other")
            await asyncio.sleep(0.338)

    other = asyncio.create_task(send_evenly())
    await asyncio.sleep(1)
    reading = asyncio.create_task(world.process().read_lists(240))
    await other
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    counted = [who for at, who in world.service.admitted if begun + 10 <= at < begun + 60]
    ours = len(counted) - counted.count("other")
    assert ours >= 0.9 * (5 * 50 - counted.count("other"))
    assert sum(begun + 10 <= at for at, _ in world.service.refused) <= 1


@pytest.mark.parametrize("latency", [0.05, 0.9, 1.1, 1.9])
async def test_another_client_is_seen_by_answers_that_are_written_late(
    world: World, latency: float
) -> None:
    """Beside a request that hangs, or one that waits, an answer is written up to 1 s later."""
    process, world.latency = world.process(), latency
    await process.ask()
    await asyncio.sleep(3)
    hanging = asyncio.create_task(hang(process))
    asking = asyncio.create_task(process.ask_together(3))
    await asyncio.sleep(latency / 4)
    for _ in range(2):  # one more than the request that hangs, which did not arrive
        world.service.arrive("other")
    await asking
    await asyncio.sleep(1.1)
    hanging.cancel()
    with world.metadata.transaction() as db:
        assert db.get_one(RateLimitActor, world.actor).others


async def test_a_container_that_was_killed_holds_no_slot_for_ever(world: World) -> None:
    """A container that is started again has another host name: each sync waited for ever."""
    with world.metadata.transaction() as session:
        for sent_at in (None, now() + 1e6, now(), now(), now()):
            owner = "0a1b2c3d4e5f:7:boot+1.00"
            session.add(RateLimitSlot(actor=world.actor, owner=owner, sent_at=sent_at))
    assert await seconds_of(world.process().read_lists(12)) <= 63


async def test_a_person_is_told_what_other_clients_cost(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Where `Remaining` is always 0, a sync went at a fifth of its pace, and nobody was told."""
    world.service.always_full = True
    process = world.process()
    await process.read_lists(30)
    assert not caplog.messages
    await process.read_lists(60)
    (message,) = caplog.messages
    assert "use up to 4 of its 5 requests per second" in message
    assert "sends 1 per second in place of 5 and takes up to 5.0 times as long" in message


async def test_nobody_is_told_of_other_clients_where_there_are_none(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.latency, world.jitter = 0.15, 0.06
    await world.process().read_lists(600)
    world.options = LimitOptions(max_requests_per_window=2)
    await world.process().read_lists(150)
    assert not caplog.messages
