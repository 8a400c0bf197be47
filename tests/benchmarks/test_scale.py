"""The model of docs/scale.md: near to what was measured, and the page says what it says."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import scale
from benchmarks.growth import Plan, kept, night
from benchmarks.simulation import Give, Night, Pool, Run, Take

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
SMALL = Plan(10, 4_440, 2, 2, 4, 2.0)


def _holding(pool: Pool, seconds: float) -> Run:
    yield Take(pool)
    yield seconds
    yield Give(pool)


@pytest.mark.parametrize(("places", "runs", "end"), [(1, 5, 10.0), (2, 5, 6.0), (9, 5, 2.0)])
def test_runs_wait_for_places(places: int, runs: int, end: float) -> None:
    pool = Pool("places", places)
    assert Night().simulate(_holding(pool, 2.0) for _ in range(runs)) == end
    assert pool.use(end) == pytest.approx(2.0 * runs / (places * end))
    assert pool.taken == 0


def test_who_is_last_waits_for_all_others() -> None:
    pool, order = Pool("places", 1), list[str]()

    def run(name: str, *, last: bool = False) -> Run:
        yield Take(pool, last=last)
        yield 1.0
        order.append(name)
        yield Give(pool)

    assert Night().simulate([run("a"), run("b", last=True), run("c"), run("d")]) == 4.0
    assert order == ["a", "c", "d", "b"]


def test_the_forecast_of_the_rehearsed_night_is_within_a_fifth_of_what_was_measured() -> None:
    off = {what: model / seen - 1 for what, model, seen in scale.checks()}
    assert len(off) >= 8
    assert all(abs(each) <= scale.CLOSE for each in off.values()), off


def test_more_of_what_holds_a_night_up_makes_it_shorter() -> None:
    before = night(SMALL)
    assert night(Plan(10, 4_440, 4, 4, 8, 4.0, one_file=False)).seconds < before.seconds
    assert night(Plan(20, 4_440, 2, 2, 4, 2.0)).seconds > before.seconds
    assert before.requests == 10 * SMALL.requests
    assert 0.5 < before.use[before.narrowest] <= 1.0


def test_a_year_adds_up() -> None:
    year = kept(SMALL, 365, 0.0)
    assert year.partitions == 3650
    assert year.ledger == pytest.approx(365 * night(SMALL).ledger)
    assert year.archive < 365 * night(SMALL).archive


QUICK = [scale.checked, scale.a_connection, scale.saturated, scale.partitions, scale.days]


@pytest.mark.parametrize("table", QUICK)
def test_the_page_shows_what_the_model_says(table: Callable[[], str]) -> None:
    assert table() in PAGE.read_text(encoding="utf-8")
