"""One budget for several processes: what one does, the others know; what dies is freed."""

import asyncio
from contextlib import ExitStack
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from pipelines.api.budget import Budget
from pipelines.api.lanes import Lane
from pipelines.api.rule import MARGIN
from pipelines.api.terms import Said, Seat, Terms
from pipelines.clock import SYSTEM
from pipelines.state import slots
from pipelines.state.slots import Slots
from tests import virtual
from tests.api.sharing import Process, Service
from tests.api.test_budget import assert_never_more
from tests.virtual import CLOCK, seconds

NEAR = 0.02  # seconds: what is known of a server's clock, and a look more
STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.floats(0, 3), st.floats(0, 1), st.floats(0, 1)), max_size=40
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_no_window_holds_more_than_the_limit_of_all_together(
    ledger: Engine, steps: list[tuple[int, float, float, float]]
) -> None:
    async def main() -> Service:
        service = Service()
        lanes = [Lane.NIGHTLY, Lane.ADHOC] * 2
        members = [Process(ledger, service, lane) for lane in lanes]

        async def later(who: int, start: float, there: float, back: float) -> None:
            await asyncio.sleep(start)
            await members[who].ask(there, back)

        await asyncio.gather(*(later(*step) for step in steps))
        for each in members:
            each.budget.close()
        return service

    with ledger.begin() as rows:  # one file for all examples: virtual time begins anew in each
        for table in ("budgets", "slots", "tickets"):
            rows.execute(text(f"DELETE FROM {table}"))
    service = virtual.run(main())
    assert_never_more(service.times, 5, 1.0)
    assert len(service.times) == len(steps)


def test_a_429_makes_everybody_wait_and_says_so(ledger: Engine) -> None:
    async def main() -> tuple[float, list[tuple[object, str]]]:
        service = Service()
        one, other = Process(ledger, service), Process(ledger, service)
        async with one.budget.slot():
            one.budget.hear(Said(429, seconds(), 5, 0, 7.0))
        await asyncio.sleep(0)  # a server is told by a thread
        return await other.ask(), other.told

    waited, told = virtual.run(main())
    assert waited == pytest.approx(7.0, abs=NEAR)
    until, why = told[0]
    assert isinstance(until, datetime)
    late = until - virtual.EPOCH - timedelta(seconds=1007)
    assert abs(late.total_seconds()) < NEAR
    assert why == "rate limit"
    assert told[-1] == (None, "")


def test_waiting_for_the_other_lane_is_said(ledger: Engine) -> None:
    async def main() -> list[tuple[object, str]]:
        service = Service()
        nightly = Process(ledger, service, Lane.NIGHTLY, Terms(1, 1.0))
        adhoc = Process(ledger, service, Lane.ADHOC, Terms(1, 1.0))
        chains = asyncio.gather(nightly.chains(3, seconds() + 8), adhoc.chains(1, seconds() + 8))
        await chains
        return adhoc.told

    told = virtual.run(main())
    assert (None, "the nightly lane") in told
    assert told[-1] == (None, "")


def test_the_dead_are_freed_their_place_at_once_their_slots_after_a_window(
    ledger: Engine,
) -> None:
    async def main() -> list[float]:
        service = Service()
        doomed, heir = Process(ledger, service), Process(ledger, service)
        asked = [asyncio.create_task(doomed.ask(there=60)) for _ in range(7)]  # two of them wait
        await asyncio.sleep(0.5)
        doomed.die()
        begun = seconds()
        waits = [await heir.ask() for _ in range(6)]
        for task in asked:
            task.cancel()
        assert seconds() - begun < 2.5
        return waits

    first, *others = virtual.run(main())
    assert first == pytest.approx(1.0 + MARGIN, abs=0.1)  # a busy server's clock is known so well
    assert others[:4] == pytest.approx([0.0] * 4)


def test_a_process_that_was_stopped_at_its_turn_is_passed_over(ledger: Engine) -> None:
    async def main() -> float:
        service = Service()
        stopped, other = Process(ledger, service), Process(ledger, service, Lane.ADHOC)
        await asyncio.gather(*(stopped.ask() for _ in range(5)))
        rows = stopped.budget._slots
        with rows.transaction():
            rows.queue(Lane.NIGHTLY, seconds())  # its turn, and it never looks again
        return await other.ask()

    assert 1.0 < virtual.run(main()) < 1.15


def test_after_a_reboot_rows_are_void_but_a_retry_after_is_not(ledger: Engine) -> None:
    async def main() -> list[float]:
        service = Service()
        before = Process(ledger, service)
        for _ in range(5):
            await before.ask()
        before.budget.block(30.0)
        await asyncio.sleep(10)
        with ledger.begin() as rows:
            rows.execute(text("UPDATE budgets SET boot = 'another', blocked_until = 1e9"))
            rows.execute(text("UPDATE slots SET answered_at = 1e9"))
        after = Process(ledger, service)
        return [await after.ask() for _ in range(5)]

    assert virtual.run(main()) == pytest.approx([20.0, 0, 0, 0, 0], abs=NEAR)


def test_the_limit_that_one_learns_is_everybodys_and_the_allowance_is_ones_own(
    ledger: Engine,
) -> None:
    async def main() -> list[int]:
        service = Service()
        modest = Process(ledger, service, terms=Terms(5, 1.0, allowance=4))
        other = Process(ledger, service)
        counts = []
        for limit in (5, 3, 8):
            await other.ask()
            other.budget.learn(limit)
            for each in (modest, other):
                await asyncio.sleep(2)
                begun = seconds()
                waits = await asyncio.gather(*(each.ask() for _ in range(9)))
                counts.append(waits.count(0.0))
                assert seconds() - begun < 5
        return counts

    assert virtual.run(main()) == [4, 5, 3, 3, 4, 8]


# How many requests of ours the service may count, what it says remains, whether others used it.
REMAINING = [(1, 4, False), (1, 3, True), (3, 2, False), (3, 0, True), (5, 0, False)]


@pytest.mark.parametrize(("ours", "remaining", "foreign"), REMAINING)
def test_foreign_use_is_noticed_where_our_log_cannot_explain_it(
    ledger: Engine,
    ours: int,
    remaining: int,
    foreign: bool,  # noqa: FBT001
) -> None:
    async def main() -> Process:
        process = Process(ledger, Service())
        for _ in range(4):
            await asyncio.sleep(5)
            for number in range(ours):
                async with process.budget.slot():
                    last = number == ours - 1
                    process.budget.hear(Said(200, seconds(), 5, remaining if last else None))
        return process

    process = virtual.run(main())
    assert len(process.foreign) == foreign
    if foreign:
        assert "set allowance = " in process.foreign[0]
    assert [use.actor for use in slots.foreign_uses(ledger)] == ["host actor"] * foreign
    assert all(use.answers == 4 for use in slots.foreign_uses(ledger))


def test_what_another_process_of_ours_sent_is_not_foreign(ledger: Engine) -> None:
    async def main() -> list[str]:
        service = Service()
        one, other = Process(ledger, service), Process(ledger, service)
        for _ in range(5):
            await asyncio.gather(*(one.ask() for _ in range(4)))
            async with other.budget.slot():
                other.budget.hear(Said(200, seconds(), 5, 0))
            await asyncio.sleep(3)
        return other.foreign

    assert virtual.run(main()) == []


def test_a_request_that_failed_may_be_what_the_service_counts(ledger: Engine) -> None:
    async def main() -> list[str]:
        process = Process(ledger, Service())
        for _ in range(6):
            async with process.budget.slot():
                pass  # no answer
            await asyncio.sleep(4)
            async with process.budget.slot():
                process.budget.hear(Said(200, seconds(), 5, 3))
        return process.foreign

    assert virtual.run(main()) == []


def _busy(ledger: Engine, seconds_long: float, budget: Budget) -> None:
    """Let another process be in a transaction for some time; the budget waits a moment for it."""
    other, writing = Slots(ledger, budget._key()), ExitStack()
    writing.callback(other.close)
    writing.enter_context(other.transaction())
    asyncio.get_running_loop().call_later(seconds_long, writing.close)
    budget._slots.desk.hurry(0.005)


def test_another_process_that_writes_for_long_is_waited_for(ledger: Engine) -> None:
    async def main() -> float:
        budget = Budget(CLOCK, Terms(), Seat(ledger))
        async with budget.slot():
            pass
        await asyncio.sleep(0.01)
        _busy(ledger, 0.2, budget)
        async with budget.slot() as waited:
            budget.block(3.0)
        async with budget.slot() as blocked:
            pass
        budget.close()
        return waited + blocked

    assert virtual.run(main()) == pytest.approx(3.2, abs=NEAR)


def test_a_process_alone_waits_without_looking_around(ledger: Engine) -> None:
    """By the system's clock: a wait is one sleep, and ends on time."""
    sleeps: list[float] = []

    async def sleep(wait: float) -> None:
        sleeps.append(wait)
        await asyncio.sleep(wait)

    async def main() -> list[float]:
        budget = Budget(SYSTEM.__class__(sleep=sleep), Terms(2, 0.1), Seat(ledger))
        sent = []
        for _ in range(6):
            async with budget.slot():
                sent.append(SYSTEM.monotonic())
        budget.close()
        return sent

    sent = asyncio.run(main())
    assert len(sleeps) <= 4
    assert all(later - one >= 0.1 for one, later in pairwise(sent[::2]))


def test_requests_of_a_process_that_hangs_are_not_waited_for_without_end(ledger: Engine) -> None:
    async def main() -> float:
        service = Service()
        stopped, other = Process(ledger, service), Process(ledger, service)
        asked = [asyncio.create_task(stopped.ask(there=1e6)) for _ in range(5)]
        await asyncio.sleep(100)
        waited = await other.ask()
        for task in asked:
            task.cancel()
        return waited

    assert virtual.run(main()) == pytest.approx(21.0, abs=0.1)


def test_a_ledger_that_another_process_holds_is_said(ledger: Engine) -> None:
    async def main() -> list[str]:
        process = Process(ledger, Service())
        await process.ask()
        await asyncio.sleep(0.01)
        _busy(ledger, 1.2, process.budget)
        await process.ask()
        return [why for _until, why in process.told]

    assert virtual.run(main()) == ["another process", ""]
