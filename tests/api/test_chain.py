"""The anchored chain: no schedule of changes makes it claim what is not so, and what it costs."""

from collections import Counter
from math import ceil
from random import Random

import pytest

from pipelines.api import paging
from pipelines.api.before import Before
from pipelines.api.seen import Seen, mark
from pipelines.state.proof import Grade
from tests.api.exhaustive import Small, tried
from tests.api.moving import Churn, Moving, Rows, Shift, still

CLAIMS = {Grade.SNAPSHOT, Grade.COMPLETE, Grade.COMPLETE_BY_COUNT}


def test_no_schedule_of_additions_and_removals_makes_a_false_claim() -> None:
    grades: Counter[Grade] = Counter()
    inversions = 0
    for seed in range(5000):
        chance = Random(seed)
        rows = list(range(chance.randint(0, 40)))
        churn = Churn(chance, chance.choice([0, 0.1, 0.5, 1, 2]), chance.random())
        moving = Moving(rows, chance.choice([4, 5, 8]), churn)
        proof = moving.read()
        grades[proof.grade] += 1
        assert proof.grade not in CLAIMS or churn.lived <= moving.union, seed
        assert proof.inversions == 0 or proof.grade in {Grade.COMPLETE_BY_COUNT, Grade.PARTIAL}
        inversions += proof.inversions > 0
        assert proof.rows == len(moving.union), seed
    assert grades[Grade.COMPLETE] > 3000
    assert set(grades) <= CLAIMS | {Grade.PARTIAL}
    assert grades[Grade.PARTIAL] < 25
    assert inversions < 150  # nothing moved; where half a page changes per request, some seem to


def quiet_cost(rows: int, limit: int) -> int:
    """Say by the formula what an unchanging list of more than a page costs.

    The last page costs a look behind it where it is full.
    """
    step = limit - paging.overlap(limit)
    full = (rows - limit) % step == 0
    return 1 + ceil((rows - limit) / step) + full + 1


SIZES = [(n, limit) for limit in (4, 5, 7) for n in range(limit + 1, 60)]
SIZES += [(10_000, 100), (50_000, 500), (101, 100), (501, 500), (995, 500), (9_999, 100)]


@pytest.mark.parametrize(("rows", "limit"), SIZES)
def test_an_unchanging_list_costs_what_the_formula_says(rows: int, limit: int) -> None:
    moving = Moving(list(range(rows)), limit)
    proof = moving.read(Before(rows))
    assert (proof.grade, proof.rows, proof.repairs) == (Grade.COMPLETE, rows, 0)
    assert proof.requests == len(moving.asked) == quiet_cost(rows, limit)
    assert moving.asked[-1] == 0  # the head witness


@pytest.mark.parametrize(("rows", "requests"), [(0, 1), (1, 1), (99, 1), (100, 2)])
def test_a_single_page_is_a_snapshot(rows: int, requests: int) -> None:
    """A full page that says it is all costs a look behind it."""
    proof = Moving(list(range(rows)), 100).read()
    assert (proof.grade, proof.rows, proof.requests) == (Grade.SNAPSHOT, rows, requests)


def test_moved_rows_never_make_a_false_claim_beyond_what_is_named() -> None:
    """COMPLETE names its assumption, that no row moved; a count is true whatever moved."""
    grades: Counter[Grade] = Counter()
    for seed in range(1000):
        chance = Random(seed)
        shift = Shift(chance, chance.choice([1, 4]), chance.choice([5, 20, 60, 1000]))
        moving = Moving(list(range(chance.randint(15, 60))), 8, shift)
        proof = moving.read()
        grades[proof.grade] += 1
        if proof.grade is Grade.COMPLETE_BY_COUNT:
            assert moving.union == set(moving.rows), seed
        if proof.grade is Grade.COMPLETE:
            assert proof.assumption.endswith("changed its place among the others"), seed
    assert grades[Grade.COMPLETE_BY_COUNT] > 500
    assert set(grades) <= CLAIMS | {Grade.PARTIAL}


def last_night(rows: Rows) -> Before:
    order = Seen()
    order.add((place, mark(b"%d" % row)) for place, row in enumerate(rows))
    return Before(len(rows), order)


def test_an_order_that_moved_since_last_night_is_read_until_nothing_is_added() -> None:
    before = last_night(list(range(400)))
    moved = list(range(400))
    for row in (30, 130, 230, 330):
        moved.remove(row)
        moved.insert(row - 25, row)
    once = quiet_cost(400, 100) - 1
    proof = Moving(moved, 100).read(before)
    assert (proof.grade, proof.chains, proof.requests) == (Grade.COMPLETE, 2, 2 * once + 1)
    assert proof.inversions == 0
    assert proof.assumption == "if nothing moved while the last chain was read"
    grown = [1000, *range(0, 400, 2), 1001]  # half of them gone, some new: the same order
    quiet = Moving(grown, 100).read(before)
    assert (quiet.grade, quiet.chains) == (Grade.COMPLETE, 1)


def test_rows_added_at_the_head_are_read_by_the_witness() -> None:
    def change(rows: Rows, number: int) -> None:
        if number == 3:
            rows[:0] = range(1000, 1150)

    moving = Moving(list(range(300)), 100, change)
    proof = moving.read()
    assert proof.grade is Grade.COMPLETE
    assert set(range(1000, 1150)) <= moving.union
    assert moving.asked[-3:] == [0, 97, 194]  # until a page shows nothing unseen


def test_equal_answers_make_equal_requests() -> None:
    def reading(seed: int) -> tuple[list[int], list[Rows]]:
        moving = Moving(list(range(50)), 8, Churn(Random(seed), 1, 0.4))
        moving.read()
        return moving.asked, moving.shown

    assert all(reading(seed) == reading(seed) for seed in range(50))


# What a regression needs: the list, its pages' size, and what changes before which page.
def test_a_row_read_on_a_page_that_was_cut_off_is_no_false_inversion() -> None:
    def change(rows: Rows, number: int) -> None:
        if number == 4:
            rows[:0] = range(100, 116)  # the next page falls back two pages
        if number == 5:
            rows.insert(rows.index(12), 200)  # among rows that the cut-off pages showed

    moving = Moving(list(range(40)), 8, change)
    proof = moving.read()
    assert (proof.grade, proof.inversions) == (Grade.COMPLETE, 0)
    assert set(range(40)) <= moving.union


@pytest.mark.parametrize("keyed", [True, False])
def test_pages_of_a_single_row_prove_nothing(*, keyed: bool) -> None:
    proof = Moving(list(range(3)), 1).read(keyed=keyed)
    assert (proof.grade, proof.rows) == (Grade.PARTIAL, 3)


def test_a_list_of_pages_of_two_rows_is_read() -> None:
    moving = Moving(list(range(9)), 2)
    assert moving.read().grade is Grade.COMPLETE
    assert moving.union == set(range(9))


def test_a_list_that_nothing_holds_together_ends_with_its_budget() -> None:
    def change(rows: Rows, number: int) -> None:
        rows[:] = range(number * 100, number * 100 + 30)

    proof = Moving(list(range(30)), 8, change).read()
    assert proof.grade is Grade.PARTIAL
    assert proof.reason.startswith("Its rows were not counted within 100 requests")
    assert proof.requests <= 100


def test_what_is_never_asked_for_again_when_quiet() -> None:
    moving = Moving(list(range(300)), 100, still)
    moving.read()
    assert Counter(moving.asked).most_common(1) == [(0, 2)]


@pytest.mark.parametrize("small", [Small(4, 3, 3), Small(7, 4, 2)])
def test_every_schedule_of_a_small_list(small: Small) -> None:
    grades = sum((tried(small, first) for first in range(small.events)), Counter[Grade]())
    assert grades.total() == small.cases
    assert grades[Grade.COMPLETE] > 0.9 * small.cases
