"""What is left to others who use the same actor, and what is left to us."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from pipelines.api import reserve
from pipelines.api.budget import Budget
from pipelines.api.rule import MARGIN
from pipelines.api.terms import Said, Seat, Terms
from pipelines.state.slots import Account
from tests import virtual
from tests.api.shared_actor import LIMIT, OTHERS, OURS, Actor, Path, Sync, sends_evenly
from tests.virtual import CLOCK, seconds

MINUTE = 60.0
THIRD = 1 / 3  # seconds between an answer and the other client's next request
# Shortest time of one way in seconds, and how much longer than that a way may be.
PATHS = st.tuples(st.floats(0.0, 0.2), st.floats(0.0, 0.1), st.integers(0, 99)).map(
    lambda drawn: Path(drawn[0], drawn[0] * drawn[1] + 0.002, drawn[2])
)


def shown(*answers: tuple[int, float]) -> Account:
    """Return the account after answers that counted so many requests of others, at a moment."""
    account = Account("boot")
    for foreign, at in answers:
        account = reserve.raised(account, foreign, 1.0, at)
    return account


def test_what_one_answer_shows_is_left_for_three_windows() -> None:
    account = shown((3, 100.0))
    moments = (100.0, 102.9, 103.0, 9e9)
    assert [reserve.current(account, 1.0, at) for at in moments] == [3, 3, 0, 0]
    assert reserve.current(account, 10.0, 129.9) == 3


def test_what_is_confirmed_is_held_for_a_minute_and_then_eases_step_by_step() -> None:
    account = shown((3, 100.0), (3, 101.1))
    moments = (101.1, 161.0, 161.2, 181.0, 181.2, 201.2, 9e9)
    assert [reserve.current(account, 1.0, at) for at in moments] == [3, 3, 2, 2, 1, 0, 0]


@pytest.mark.parametrize(
    ("answers", "at", "expected"),
    [
        ([(3, 0.0), (3, 0.9)], 10.0, 0),  # the same window
        ([(3, 0.0), (3, 19.0)], 30.0, 3),
        ([(3, 0.0), (3, 21.0)], 30.0, 0),  # too long ago
        ([(3, 0.0), (2, 1.1)], 30.0, 2),  # two are in both
        ([(2, 0.0), (3, 1.1)], 3.0, 3),
        ([(2, 0.0), (3, 1.1)], 30.0, 2),
        ([(3, 0.0), (3, 1.1), (4, 30.0)], 32.9, 4),  # a delay pushed them together
        ([(3, 0.0), (3, 1.1), (4, 30.0)], 33.1, 3),
        ([(3, 0.0), (3, 1.1), (4, 30.0), (4, 40.0)], 99.0, 4),
        ([(3, 0.0), (3, 1.1), (3, 50.0)], 109.0, 3),  # as many: held for longer
        ([(3, 0.0), (3, 1.1), (2, 50.0)], 70.0, 2),
        ([(3, 0.0), (3, 1.1), (2, 70.0)], 129.0, 2),  # as many as there still are
    ],
)
def test_answers_confirm_each_other(
    answers: list[tuple[int, float]], at: float, expected: int
) -> None:
    account = shown(*((foreign, 1000.0 + moment) for foreign, moment in answers))
    assert reserve.current(account, 1.0, 1000.0 + at) == expected


def beside_another(
    path: Path, phase: float, since: float = 0.0, until: float = MINUTE, stay: float = MINUTE
) -> tuple[Actor, Sync, float]:
    """Sync beside a client that sends 3 requests a second evenly; it begins a second before us.

    `stay`: seconds after which the other client stops. Return also the moment at which we begin.
    """

    async def main() -> tuple[Actor, Sync, float]:
        actor, begun = Actor(), seconds() + 1.0 + phase
        other = sends_evenly(actor, Path(0.002, 0.003, 7), THIRD, begun + stay)
        asked = asyncio.create_task(other)
        await asyncio.sleep(1.0 + phase + since)
        sync = Sync(actor, path)
        await sync.run(begun + until)
        await asked
        return actor, sync, begun

    return virtual.run(main())


@settings(max_examples=40, deadline=None)
@given(PATHS, st.floats(0.0, 1.0))
def test_beside_three_requests_a_second_two_are_used_without_429s(path: Path, phase: float) -> None:
    actor, sync, begun = beside_another(path, phase)
    assert len(actor.refused) <= 2
    assert actor.refusals(begun + 5, begun + MINUTE) <= 1
    assert actor.rate(OURS, begun, begun + MINUTE) >= 0.9 * 2
    assert actor.rate(OTHERS, begun, begun + MINUTE) > 2.85
    (warning,) = sync.warnings
    assert "counts 3 requests per second that partner-sync did not send" in warning
    assert "it sends 2 requests per second and takes longer" in warning
    assert "set allowance = 2" in warning


def test_the_full_rate_grows_back_when_the_other_client_has_gone() -> None:
    actor, _sync, begun = beside_another(Path(), 0.4, until=200.0, stay=20.0)
    assert actor.rate(OURS, begun + 2, begun + 20) == pytest.approx(2.0, rel=0.05)
    assert actor.rate(OURS, begun + 125, begun + 200) == pytest.approx(5.0, rel=0.02)
    assert len(actor.refused) == 0


@pytest.mark.parametrize("latency", [0.0, 0.02, 0.15, 0.4])
def test_a_client_that_begins_later_is_found_by_the_first_429(latency: float) -> None:
    """The first 429 comes when chance wills it: until then the headers show our requests only."""

    async def main() -> tuple[Actor, float]:
        actor, begun = Actor(), seconds()
        sync = Sync(actor, Path(latency / 2, 0.004))
        syncing = asyncio.create_task(sync.run(begun + 180))
        await asyncio.sleep(5.2)
        await sends_evenly(actor, Path(0.002, 0.003, 7), THIRD, begun + 180)
        await syncing
        return actor, begun

    actor, begun = virtual.run(main())
    found = next(at for at, who in actor.refused if who == OURS)
    assert found < begun + 120
    assert len([at for at, who in actor.refused if at >= found and who == OURS]) <= 2
    assert actor.refusals(found + 5, begun + 180) == 0
    assert actor.rate(OURS, found + 5, begun + 180) >= 0.9 * 2


@settings(max_examples=40, deadline=None)
@given(st.lists(PATHS, min_size=1, max_size=2), st.integers(1, 6))
def test_alone_nothing_is_reserved(paths: list[Path], chains: int) -> None:
    """However the path changes: the limit of the documented second is ours."""

    async def main() -> tuple[Actor, Sync]:
        actor = Actor()
        sync = Sync(actor, paths[0])
        for path in paths:
            sync.path = path
            await asyncio.gather(*(sync.chain(seconds() + 10) for _ in range(chains)))
        return actor, sync

    actor, sync = virtual.run(main())
    assert sync.budget._rule.reserve == 0
    assert sync.budget._rule.sightings == 0
    assert sync.warnings == []
    # A path that becomes shorter all at once may cost 429s (docs/benchmarks.md, paths).
    assert len(paths) > 1 or not actor.refused


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.floats(0.0, 1.0))
def test_what_one_process_learns_the_others_leave_too(ledger: Engine, phase: float) -> None:
    async def main() -> tuple[Actor, int, float]:
        actor, begun = Actor(), seconds() + 1 + phase
        other = asyncio.create_task(sends_evenly(actor, Path(0.002, 0.003, 7), THIRD, begun + 40))
        await asyncio.sleep(1 + phase)
        first = Sync(actor, Path(seed=1), Seat(ledger))
        await first.run(begun + 5)
        both = [Sync(actor, Path(seed=seed), Seat(ledger)) for seed in (2, 3)]
        await asyncio.gather(*(each.run(begun + 40) for each in both))
        await other
        return actor, both[0].budget._rule.reserve, begun

    actor, learned, begun = virtual.run(main())
    assert learned == 3
    assert len(actor.refused) <= 2
    assert actor.rate(OURS, begun + 5, begun + 40) >= 0.9 * 2


# What the second of two answers says: seconds until the reset, and those until we send again.
EVEN = 0.45  # 0.9 of the distance of two requests per window
RESETS: list[tuple[float | None, float]] = [
    (0.7, 0.7),
    (1.0, 1.0),
    (60.0, 1.0 + MARGIN),
    (1.7e12, 1.0 + MARGIN),
]
RESETS += [(None, EVEN), (0.0, EVEN), (-1.7e9, EVEN)]


@pytest.mark.parametrize(("resets_in", "expected"), RESETS)
def test_nothing_is_sent_before_the_reset_and_no_longer_than_a_window_is_waited(
    resets_in: float | None, expected: float
) -> None:
    async def main() -> float:
        budget = Budget(CLOCK, Terms(LIMIT, 1.0))
        for remaining, pause in ((4, 0.9), (0, 0.0)):  # ours are two: three are another's
            async with budget.slot():
                budget.hear(Said(200, seconds(), LIMIT, remaining, None, resets_in))
            await asyncio.sleep(pause)
        async with budget.slot() as waited:
            return waited

    assert virtual.run(main()) == pytest.approx(expected, abs=2 * MARGIN)


def test_a_reset_that_our_log_explains_is_not_waited_for() -> None:
    async def main() -> float:
        budget = Budget(CLOCK, Terms(LIMIT, 1.0))
        for remaining in (4, 3, 2, 1, 0):
            async with budget.slot():
                budget.hear(Said(200, seconds(), LIMIT, remaining, None, 30.0))
        async with budget.slot() as waited:
            return waited

    assert virtual.run(main()) == pytest.approx(1.0 + MARGIN)


def test_a_limit_of_one_leaves_that_one_to_us() -> None:
    async def main() -> list[float]:
        budget = Budget(CLOCK, Terms(1, 1.0))
        waits = []
        for _ in range(4):
            async with budget.slot() as waited:
                waits.append(waited)
                budget.hear(Said(429, seconds(), 1, 0, 1.0, 1.0))
        return waits

    assert max(virtual.run(main())) < 1.2


def test_after_a_reboot_nothing_is_reserved(ledger: Engine) -> None:
    async def main() -> list[int]:
        found = []
        for boot in ("", "another"):
            if boot:
                with ledger.begin() as rows:
                    rows.exec_driver_sql(f"UPDATE budgets SET boot = '{boot}'")
            budget = Budget(CLOCK, Terms(), Seat(ledger), key=lambda: "host actor")
            async with budget.slot():
                found.append(budget._rule.reserve)
                budget.hear(Said(200, seconds(), LIMIT, 1))
            async with budget.slot():
                found.append(budget._rule.reserve)
            await asyncio.sleep(2)
            budget.close()
        return found

    assert virtual.run(main()) == [0, 3, 0, 3]
