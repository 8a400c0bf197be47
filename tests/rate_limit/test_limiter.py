"""One process: pace, failures, cancelled waits, Retry-After, clocks that are set."""

import asyncio
import logging
import random
from collections import Counter
from datetime import UTC, datetime
from itertools import chain, pairwise, repeat
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.event import listen

from pipelines.core.errors import Postponed
from pipelines.metadata.tables import RateLimitSlot
from pipelines.rate_limit.limiter import HEAD_START, LimitOptions, Slot, end_pause
from tests.rate_limit.simulated import EPOCH, World, now, seconds_of

WINDOW = 1.002  # with the margin


def newest_slot(world: World) -> int:
    with world.metadata.transaction() as db:
        return db.scalar(select(func.max(RateLimitSlot.number))) or 0


def open_slots(world: World) -> int:
    is_open = RateLimitSlot.actor == world.actor, RateLimitSlot.held_until.is_(None)
    with world.metadata.transaction() as db:
        return db.scalar(select(func.count()).where(*is_open)) or 0


@pytest.mark.parametrize(("share", "windows"), [(None, 11), (2, 29)])
async def test_without_latency_only_the_margin_is_lost(
    world: World, share: int | None, windows: int
) -> None:
    world.options = LimitOptions(max_requests_per_window=share)
    await world.process().read_lists(60)
    moments = world.service.moments()
    assert all(b - a > 1 for a, b in zip(moments, moments[share or 5 :], strict=False))
    starts = HEAD_START * ((share or 5) - 1)
    assert world.service.span() == pytest.approx(windows * WINDOW + starts, abs=1e-4)


async def test_latency_is_paid_for_the_first_requests_only(world: World) -> None:
    world.latency = 0.4
    await world.process().read_lists(120)
    moments = world.service.moments()[30:]
    # A window is longer by the doubt: 2 s / k of the shortest round trip, k from 30 on.
    assert moments[-1] - moments[0] <= (len(moments) - 1) / 5 * (WINDOW + 2 * 0.4 / 30)
    assert world.service.refused == []


async def test_a_process_alone_looks_once_for_most_slots(world: World) -> None:
    statements = Counter[str]()

    def count(*event: Any) -> None:
        statements[" ".join(event[2].split()[:2])] += "place" in event[2]

    listen(world.metadata.engine, "before_cursor_execute", count)
    world.latency = 0.05
    await world.process().read_lists(60)
    assert statements["INSERT INTO"] == 60
    # Once in a window, the slot to wait for was not answered when the wait began.
    assert statements["UPDATE rate_limit_slots"] <= 12


async def test_one_list_is_read_ahead_where_latency_leaves_room(world: World) -> None:
    world.latency = 0.8
    await world.process().read(100)  # one after the other takes 80 s
    assert world.service.span() <= 24


@pytest.mark.parametrize("fate", ["answered", "failed", "unauthorized", "cancelled"])
async def test_a_request_holds_its_slot_for_one_window(world: World, fate: str) -> None:
    world.latency, process, begun = 0.2, world.process(), now()
    fails, status = fate == "failed", 401 if fate == "unauthorized" else None
    asked = [asyncio.create_task(process.ask(fails=fails, status=status)) for _ in range(5)]
    await asyncio.sleep(0.15)
    if fate == "cancelled":  # it may have arrived
        for each in asked:
            each.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    ended = now()
    await process.ask()
    last = 0.0 if fate == "cancelled" else 4 * HEAD_START  # its answer came after the first one's
    assert ended - begun == pytest.approx(0.15 if fate == "cancelled" else 0.2 + HEAD_START + last)
    assert world.service.moments()[5] - ended == pytest.approx(WINDOW + 0.1 - last)


async def test_a_cancelled_wait_gives_its_slot_back(world: World) -> None:
    process = world.process()
    await process.ask_together()
    waiting = [asyncio.create_task(process.ask()) for _ in range(3)]
    for seconds, task in zip((0.1, 0.885, 0.005), waiting, strict=True):
        await asyncio.sleep(seconds)  # the second has taken its slot and not sent
        task.cancel()
    assert await seconds_of(process.ask_together()) == pytest.approx(0.012, abs=1e-4)
    assert len(world.service.admitted) == 10


@pytest.mark.parametrize("seed", range(20))
async def test_a_process_that_falls_silent_holds_no_slot(world: World, seed: int) -> None:
    """What ended may be left to another request: the last one writes it, also if cancelled."""
    process, chance = world.process(), random.Random(seed)
    world.latency = 0.05
    requests = [asyncio.create_task(process.ask()) for _ in range(7)]
    for request in requests:
        await asyncio.sleep(chance.choice([0, 0.001, 0.1]))
        if chance.random() < 0.4:
            request.cancel()
    await asyncio.gather(*requests, return_exceptions=True)
    assert open_slots(world) == 0


async def test_a_write_that_fails_once_leaves_no_slot_held(world: World) -> None:
    process, world.latency = world.process(), 0.05
    await process.read_lists(30)
    interrupts = chain([1], repeat(0))

    def fail(*event: Any) -> None:
        is_last = process.limiter._active == 0
        if is_last and event[2].startswith("UPDATE rate_limit_slots"):
            event[1].connection.set_progress_handler(lambda: next(interrupts), 1)

    listen(world.metadata.engine, "before_cursor_execute", fail)
    await process.ask_together()
    assert next(interrupts) == 0
    assert open_slots(world) == 0


async def test_the_limit_is_learned_from_the_actors_answers(world: World) -> None:
    world.service.limit = 10
    assert await seconds_of(world.process().read_lists(102)) <= 10.1
    assert world.service.refused == []
    world.service.limit, process = 1, world.process()  # the limit of our address
    for _ in range(11):
        await process.ask(status=401)
    assert process.limiter._learner.limit == 5


async def test_where_ample_requests_remain_one_look_serves_many(world: World) -> None:
    """Below a limit that one machine cannot reach, each request need not be recorded."""
    world.service.limit, world.latency, process = 20_000, 0.001, world.process()
    begun, first = now(), newest_slot(world)
    for _ in range(1000):
        await process.ask()
    assert now() - begun < 2  # 100 a second would take 10
    assert newest_slot(world) - first <= 11
    world.service.storm, before = now() + 0.5, len(world.service.refused)
    await process.ask()
    assert len(world.service.refused) == before + 1
    assert await seconds_of(process.ask()) >= 3  # what one answer asks for ends it at once


async def test_an_answer_that_leaves_ample_room_ends_no_pause(world: World) -> None:
    world.service.limit, process = 20_000, world.process()
    await process.ask()
    for limiter in (process.limiter, world.process().limiter):
        await asyncio.sleep(1)  # its next request takes a slot
        world.latency = 0.15
        slow = asyncio.create_task(process.ask())
        await asyncio.sleep(0.05)
        limiter.share_pause(30)
        await slow
        assert await seconds_of(process.ask()) >= 29
        world.latency = 0.0


async def test_after_a_429_each_request_has_a_slot(world: World) -> None:
    world.service.limit, process = 20_000, world.process()
    await process.ask(status=429)
    await process.ask()
    first = newest_slot(world)
    for _ in range(20):
        await process.ask()
    assert newest_slot(world) == first + 20


async def test_a_share_of_ours_is_kept_where_ample_requests_remain(world: World) -> None:
    world.service.limit, world.options = 20_000, LimitOptions(max_requests_per_window=20)
    await world.process().read_lists(102)
    assert world.service.span() >= 5


async def test_a_retry_after_holds_for_everybody_and_can_be_forgotten(world: World) -> None:
    first, second = world.process(), world.process()
    first.limiter.share_pause(30)
    first.limiter.share_pause(20)
    assert await seconds_of(second.ask()) == pytest.approx(30)
    first.limiter.share_pause(30)
    waiting = asyncio.create_task(second.ask())
    await asyncio.sleep(5.2)
    end_pause(world.metadata, world.actor)
    assert await seconds_of(waiting) == pytest.approx(0.3, abs=0.5)


async def test_a_long_pause_is_said_every_half_minute(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pipelines")
    process = world.process()
    process.limiter.share_pause(100)
    await process.ask_together()
    said = "Pause, or no room in the limit: requests go on in"
    assert caplog.messages == [f"{said} {left} s." for left in (100, 70, 40)]


async def test_a_longer_wait_than_a_run_may_take_is_raised(world: World) -> None:
    process = world.process()
    process.limiter.share_pause(10**9)
    until = datetime.fromtimestamp(EPOCH + now() + 7 * 86400, UTC)
    with pytest.raises(Postponed, match=f"No request is sent before {until:%Y-%m-%d %H:%M} UTC"):
        await process.ask()
    await asyncio.sleep(7 * 86400 - 5)
    await process.ask()


async def test_a_retry_after_that_comes_while_a_request_waits_stops_it(world: World) -> None:
    process = world.process()
    await process.ask_together()
    waiting = asyncio.create_task(process.ask())
    await asyncio.sleep(0.985)  # it has its slot for 9 ms later
    process.limiter.share_pause(7)
    assert await seconds_of(waiting) == pytest.approx(7)


@pytest.mark.parametrize(
    ("step", "latency", "stall"),
    [(-86400, 0.4, 0), (-0.7, 0, 0), (-0.1, 0.4, 0), (0.7, 0.4, 0), (86400, 0, 0), (0, 0, 0.02)],
)
async def test_a_clock_that_is_set_or_a_machine_that_stalls_makes_nobody_early(
    world: World, step: float, latency: float, stall: float
) -> None:
    world.latency, world.clock.stall = latency, stall
    reading = asyncio.create_task(world.process().read_lists(45))
    await asyncio.sleep(4.3)
    world.clock.offset += step
    await reading
    assert world.service.refused == []
    # Nor are our requests taken for those of another client.
    assert world.service.span() < 8.1 + 5 * latency + 190 * stall


@pytest.mark.parametrize("stall", [0.004, 0.01, 0.04])
async def test_no_request_leaves_before_its_moment_is_in_the_database(
    world: World, stall: float
) -> None:
    """A look may end so late that the moment is near, although it was not when the look began."""
    world.clock.stall = stall
    limiter, chance = world.process().limiter, random.Random(1)

    async def send() -> None:
        await asyncio.sleep(chance.uniform(0, 60))
        slot = Slot()
        async with limiter.hold(slot):
            with world.metadata.transaction() as db:
                assert db.get_one(RateLimitSlot, slot.number).sent_at is not None

    await asyncio.gather(*(send() for _ in range(250)))


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
@pytest.mark.parametrize("restarts", [False, True])
async def test_neither_clock_nor_restart_shortens_a_retry_after(
    world: World, step: float, *, restarts: bool
) -> None:
    world.clock.offset, begun = step, now()
    world.process().limiter.share_pause(20)
    await asyncio.sleep(5)
    if restarts:
        world.restart()
    else:
        world.clock.offset += step
    await world.process().ask()
    assert now() - begun == pytest.approx(20, abs=0.01)


async def test_slots_of_before_a_restart_are_free_in_a_window(world: World) -> None:
    await world.process().ask_together()
    world.restart()
    assert await seconds_of(world.process().ask()) == pytest.approx(WINDOW + HEAD_START)


async def test_a_429_of_our_own_is_answered_with_caution(world: World) -> None:
    world.latency, process = 0.4, world.process()
    await process.read_lists(60)
    world.latency, begun = 0.02, now()  # a shorter way: the credit was for the longer one
    await process.read_lists(90)
    assert all(later - one > 0.205 for one, later in pairwise(world.service.moments(begun + 3)))
    assert all(at < begun + 1.5 for at, _ in world.service.refused)
    await asyncio.sleep(60)
    assert await seconds_of(process.read_lists(60)) < 11.4  # the usual pace again
    assert 0 < len(world.service.refused) <= 5
    assert world.service.early == 0
