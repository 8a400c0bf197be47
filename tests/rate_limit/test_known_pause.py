"""The last look: a pause that this process has heard of stops all that has not left."""

import asyncio

import pytest
from sqlalchemy import update

from pipelines.metadata.tables import RateLimitActor
from pipelines.rate_limit.known_pause import MustWait, pause_of
from pipelines.rate_limit.limiter import HEAD_START, RateLimiter, Slot, end_pause
from tests.rate_limit.simulated import Process, World, now, seconds_of

WINDOW = 1.002
MOMENT = WINDOW - 4 * HEAD_START  # of the sixth request, after five that were sent together


def another_connection(world: World, process: Process) -> Process:
    """Return another limiter of the same actor in the same process."""
    other = world.process()
    other.limiter._pause = process.limiter._pause
    return other


def test_limiters_of_an_actor_in_one_process_share_its_pause(world: World) -> None:
    limiters = [RateLimiter(world.metadata, world.actor, world.clock) for _ in range(2)]
    assert limiters[0]._pause is limiters[1]._pause is pause_of(world.actor)
    assert pause_of("another actor") is not pause_of(world.actor)


@pytest.mark.parametrize("before", [0.004, 0.0005])
async def test_a_pause_heard_after_the_last_look_stops_a_request(
    world: World, before: float
) -> None:
    process = world.process()
    other = another_connection(world, process)
    await process.ask_together()
    waiting = asyncio.create_task(process.ask())
    await asyncio.sleep(MOMENT - before)  # its last transaction was earlier
    other.limiter.note_refusal(7)
    assert await seconds_of(waiting) == pytest.approx(7, abs=0.01)


async def test_a_request_that_needs_no_slot_waits_too(world: World) -> None:
    world.service.limit, process = 20_000, world.process()
    other = another_connection(world, process)
    await process.ask()
    await process.ask()  # without a transaction
    other.limiter.note_pause(7)
    assert await seconds_of(process.ask()) == pytest.approx(7, abs=0.01)


async def test_a_request_about_to_leave_is_stopped_for_the_whole_time(world: World) -> None:
    process = world.process()
    await process.limiter.check_leaving()
    process.limiter.note_refusal(0)  # one window at least
    for seconds in (0.0, WINDOW - 0.002):
        await asyncio.sleep(seconds)
        with pytest.raises(MustWait):
            await process.limiter.check_leaving()
    await asyncio.sleep(0.003)
    await process.limiter.check_leaving()


async def test_what_was_heard_reaches_the_other_processes_with_the_next_transaction(
    world: World,
) -> None:
    process, other = world.process(), world.process()
    process.limiter.note_pause(7)
    async with process.limiter.hold(Slot()):
        pass
    process.limiter.note_pause(9)
    with pytest.raises(MustWait):
        await process.limiter.check_leaving()
    process.limiter.share_pause(0)  # any transaction
    assert await seconds_of(other.ask()) == pytest.approx(9, abs=0.01)


async def test_a_pause_that_a_person_ends_is_over_in_this_process_too(world: World) -> None:
    process = world.process()
    process.limiter.share_pause(30)
    end_pause(world.metadata, world.actor)
    assert await seconds_of(process.ask()) < 0.01
    with world.metadata.transaction() as db:  # and one of another process is known after a look
        db.execute(update(RateLimitActor).values(blocked_until=now() + 7))
    await process.limiter.wait_for_pause()
    await process.limiter.check_leaving()


async def test_a_longer_pause_is_not_shortened_by_a_shorter_one(world: World) -> None:
    process = world.process()
    process.limiter.note_pause(7)
    process.limiter.note_refusal(2)
    assert await seconds_of(process.ask()) == pytest.approx(7, abs=0.01)
