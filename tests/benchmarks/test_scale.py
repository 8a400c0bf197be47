"""The model of docs/scale.md: near to what was measured, and the page says what it says."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import costs, scale
from benchmarks.costs import COSTS
from benchmarks.growth import HOUR, Plan, kept, night
from benchmarks.simulation import Give, Night, Pool, Run, Take

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
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


def test_a_night_that_takes_more_than_its_runs_is_as_long_as_what_works_beside_them() -> None:
    slow = night(replace(SMALL, database=0.01))
    assert slow.seconds == pytest.approx(slow.database / 0.01)
    assert slow.narrowest == "PostgreSQL"
    assert slow.use["PostgreSQL"] == pytest.approx(1.0)


def test_a_publication_is_of_all_rows_whatever_was_folded_in_the_night() -> None:
    plan = replace(SMALL, conducted=1, one_file=False)  # so that each of ten runs publishes
    dearer = replace(plan, costs=replace(COSTS, lake_a_row=2 * COSTS.lake_a_row))
    more = night(dearer).processor - night(plan).processor
    assert more == pytest.approx(10 * 10 * 4_440 * COSTS.lake_a_row, rel=0.01)


A_FEW = (1, 100, 1_000)


@pytest.mark.parametrize("count", A_FEW)
@pytest.mark.parametrize("size", ["small", "middle"])
def test_a_planned_night_is_within_what_the_page_promises(size: str, count: int) -> None:
    plan, warehouses = scale.parted(count, scale.SIZES[size])
    assert night(plan).seconds <= scale.ENOUGH
    assert count <= warehouses * plan.connections < count + warehouses
    assert f"takes {scale.ENOUGH / HOUR:.1f} hours at most: eight, with a third to spare" in PAGE


def test_where_no_machinery_is_enough_there_is_no_plan() -> None:
    most = scale.of_one_file(166_000, scale.ENOUGH)
    assert scale.sized(round(0.9 * most), 166_000, one_file=True)
    assert not scale.sized(round(1.1 * most), 166_000, one_file=True)


QUICK = [scale.checked, scale.a_connection, scale.saturated, scale.partitions, scale.days]


@pytest.mark.parametrize("table", QUICK)
def test_the_page_shows_what_the_model_says(table: Callable[[], str]) -> None:
    assert table() in PAGE


@pytest.mark.parametrize("table", [scale.nights, scale.a_year])
def test_the_page_shows_a_few_of_the_simulated_nights(table: Callable[..., str]) -> None:
    counts = A_FEW if table is scale.nights else A_FEW[1:]
    assert not set(table(counts).splitlines()) - set(PAGE.splitlines())


@pytest.mark.trial
def test_the_page_shows_all_that_the_model_says() -> None:
    assert all(table in PAGE for table in scale.tables().values())


def test_tables_are_written_into_a_page_where_there_are_others() -> None:
    old = scale.days().replace("364", "1")
    page = f"# A page\n\n{old}\n\nWords.\n"
    assert scale.written(page, [scale.days()]) == page.replace(old, scale.days())


MIDDLE = scale.SIZES["middle"]
NIGHTS = (costs.SEVEN, costs.FOURTEEN, costs.LARGEST)
SAID = [
    "They took {:.0f}, {:.0f} and {:.0f} s".format(*(each.seconds for each in NIGHTS)),
    (
        f"costs {COSTS.fetch_a_run:.1f} CPU s of workers before its first page and "
        f"{COSTS.fold_a_run:.1f} after its last"
    ),
    f"daemon, and {COSTS.database_a_run:.1f} of PostgreSQL",
    (
        f"under way {1e3 * COSTS.conductor_a_second:.0f} ms of a conductor, "
        f"{1e3 * COSTS.database_a_second:.0f} of PostgreSQL and "
        f"{1e3 * COSTS.daemon_a_second:.0f} of the daemon"
    ),
    f"{COSTS.fetch_a_page} CPU s a page of {COSTS.page_rows} rows",
    f"1 CPU s for {1 / COSTS.fold_a_row:,.0f} rows folded",
    f"{1e3 * COSTS.database_a_slot:.1f} ms of PostgreSQL",
    f"{COSTS.warehouse_a_row} bytes in the warehouse",
    f"a run {round(COSTS.events_a_run * COSTS.bytes_an_event, -5) / 1e3:.0f} KB in Dagster's",
    f"**Events**: {round(COSTS.events_a_run, -1):.0f} a run",
    (
        f"One is {COSTS.lake_a_version} CPU s for its fifty small tables and "
        f"{1e6 * COSTS.lake_a_row:.0f} CPU s a million rows"
    ),
    (
        f"eight hours are full at {scale.of_one_file(MIDDLE, scale.NIGHT):.0f} connections, "
        f"with a third to spare at {scale.of_one_file(MIDDLE, scale.ENOUGH):.0f}"
    ),
    (
        f"| {scale.of_one_file(MIDDLE, scale.NIGHT):.0f} connections of middle size "
        f"({scale.of_one_file(MIDDLE, scale.NIGHT, 0.9e-6):.0f} without reconciliation)"
    ),
    f"Its {COSTS.daemon_a_run:.1f} CPU s a run is no limit",
    f"has {COSTS.database_a_run:.1f} CPU s a run and {1e3 * COSTS.database_a_slot:.1f} ms a slot",
    f"{COSTS.events_a_run * COSTS.bytes_an_event / 1e6:.1f} GB a night with 1,000 connections",
]


@pytest.mark.parametrize("words", SAID)
def test_the_words_of_the_page_say_what_the_costs_say(words: str) -> None:
    assert words in " ".join(PAGE.split())
