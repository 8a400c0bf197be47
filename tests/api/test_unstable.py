"""Lists whose order moves: no grade claims what is not so, and what each kind of list costs."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.api.before import Before
from pipelines.api.page import Page
from pipelines.api.reader import Reader
from pipelines.state.proof import Grade, Proof
from tests.api.unstable import (
    Unstable,
    growing,
    last_change,
    repeated,
    repeated_and_moved,
    shrinking,
    ties,
    unrelated,
)

SCHEDULES = 2_000 if os.environ.get("CI") else 200
SEEDS = 20
Kind = Callable[[int, int, Random], Unstable]
SLACK = 6  # requests more than the budget: what ends the last pass

KINDS: dict[str, Kind] = {
    "ties of 2": lambda *size: ties(2, *size),
    "ties of 7": lambda *size: ties(7, *size),
    "ties of 60": lambda *size: ties(60, *size),
    "ties of 700": lambda *size: ties(700, *size),
    "one tie": lambda *size: ties(size[0] or 1, *size),
    "newest change first": lambda *size: last_change(*size, head=True),
    "newest change last": lambda *size: last_change(*size, head=False),
    "repeated near": lambda *size: repeated(*size, near=True),
    "repeated far": lambda *size: repeated(*size, near=False),
    "repeated near, one moved": lambda *size: repeated_and_moved(*size, near=True),
    "repeated far, one moved": lambda *size: repeated_and_moved(*size, near=False),
    "ties, additions": lambda *size: growing(ties(7, *size)),
    "ties, removals": lambda *size: shrinking(ties(7, *size)),
    "unrelated": unrelated,
}


def assert_true(rows: Unstable, reader: Reader, proof: Proof, *, moved: bool = False) -> None:
    """Assert that whatever a proof says of a list is so.

    Where rows `moved` at random, COMPLETE says no more than its assumption, that none did.
    """
    loaded = {row for page in rows.shown[reader.superseded :] for row in page}
    if proof.grade.counts_missing and not (moved and proof.grade is Grade.COMPLETE):
        assert rows.lived <= loaded
    if proof.grade is Grade.COMPLETE_BY_COUNT:
        there, ever = rows.states[reader.superseded], set().union(*rows.states[: reader.superseded])
        assert set(there) <= loaded
        assert not (loaded - set(there)) & ever  # removed by then, or added since
        assert proof.repeats == there.total() - len(there)
        assert (proof.places, proof.rows) == (there.total(), len(loaded))
    if proof.grade is Grade.PARTIAL:
        assert proof.reason
        assert loaded == {row for page in rows.shown for row in page}
    assert proof.places is None or proof.places in {state.total() for state in rows.states}
    assert proof.not_seen is None or proof.not_seen == (proof.places or 0) - proof.rows >= 0
    assert proof.requests == len(rows.asked) <= max(25 * rows.plain, 3 * rows.plain + 20) + SLACK


@settings(max_examples=SCHEDULES)
@given(st.sampled_from(sorted(KINDS)), st.integers(8, 20), st.integers(0, 200), st.integers(0))
def test_no_kind_of_list_is_claimed_to_be_what_it_is_not(
    kind: str, limit: int, size: int, seed: int
) -> None:
    """So is the second scan of the same list, which knows what the first one learnt."""
    chance = Random(seed)
    rows = KINDS[kind](size, limit, chance)
    reader, proof = rows.read()
    assert_true(rows, reader, proof)
    again = replace(rows, states=[], shown=[], asked=[], stale=True)
    assert_true(again, *again.read(proof, Before(proof.places or 0)))


@dataclass
class Mixture:
    """Adds, removes and moves rows at random, so many before every request, for a while."""

    head: float
    end: float
    removed: float
    moved: float
    last: int

    def __call__(self, rows: Unstable, number: int) -> None:
        if number > self.last:
            return
        chance = rows.chance
        for rate, happens in (
            (self.head, lambda: rows.add(next(rows.new), head=True)),
            (self.end, lambda: rows.add(next(rows.new), head=False)),
            (self.removed, lambda: rows.pop(chance.randrange(len(rows)))),
            (
                self.moved,
                lambda: rows.move(chance.randrange(len(rows)), head=chance.random() < 0.5),
            ),
        ):
            for _event in range(int(rate) + (chance.random() < rate % 1)):
                if len(rows):
                    happens()


RATE = st.sampled_from([0.0, 0.0, 0.02, 0.1, 0.5, 1.5])
MIXTURES = st.builds(Mixture, RATE, RATE, RATE, RATE, st.sampled_from([5, 20, 60, 200]))


@settings(max_examples=SCHEDULES)
@given(MIXTURES, st.integers(1, 20), st.integers(3, 20), st.integers(0, 120), st.integers(0))
def test_no_mixture_of_changes_is_claimed_to_be_what_it_is_not(
    mixture: Mixture, tie: int, limit: int, size: int, seed: int
) -> None:
    chance = Random(seed)
    rows = replace(ties(tie, size, limit, chance), change=mixture)
    for row in chance.choices(range(size), k=chance.choice([0, 0, size // 20])) if size else ():
        rows.groups.insert(chance.randint(0, len(rows.groups)), [row])
    reader, proof = rows.read()
    assert_true(rows, reader, proof, moved=bool(mixture.moved) or tie > 1)


def short(told: Page) -> Page:
    """Show half of a page; the next one begins behind it."""
    half = max(1, told.rows // 2)
    return replace(told, rows=half, next_offset=told.offset + half) if told.has_more else told


def filtered(told: Page) -> Page:
    """Leave a row out of a page; the next one begins where it would have."""
    return replace(told, rows=told.rows - 1) if told.has_more and told.rows > 1 else told


def ended(told: Page) -> Page:
    """Say of a full page in the middle that it is the last."""
    return replace(told, has_more=False, next_offset=None)


def endless(told: Page) -> Page:
    """Say that there is more, whatever there is."""
    return replace(told, has_more=True, next_offset=told.offset + told.limit)


def empty(told: Page) -> Page:
    """Show nothing of a page in the middle."""
    return replace(told, rows=0) if told.has_more else told


LIES = [short, filtered, ended, endless, empty]
SIZES = st.tuples(st.sampled_from([1, 1, 7]), st.integers(0, 120), st.integers(5, 20))


@settings(max_examples=SCHEDULES)
@given(st.sampled_from(LIES), st.sampled_from([0.02, 0.2, 1.0]), SIZES, st.integers(0))
def test_no_page_that_lies_makes_a_false_claim(
    lie: Callable[[Page], Page], share: float, size: tuple[int, int, int], seed: int
) -> None:
    """Each answer lies with a certain chance, or each does."""
    chance = Random(seed)
    rows = replace(
        ties(*size, chance), lie=lambda told: lie(told) if chance.random() < share else told
    )
    assert_true(rows, *rows.read())


# Plain passes that a list may cost at most, and that the next scan may; how many of 20 lists have
# to be proven complete.
COSTS: dict[str, tuple[float, float, int]] = {
    "ties of 2": (7, 6, 20),
    "ties of 7": (7, 6, 20),
    "ties of 60": (7, 6, 20),
    "ties of 700": (25, 25, 18),
    "one tie": (25, 25, 18),
    "newest change first": (7, 7, 20),
    "newest change last": (7, 7, 20),
    "repeated near": (2.5, 2.5, 20),
    "repeated far": (2.5, 2.5, 20),
    "repeated near, one moved": (7, 7, 20),
    "repeated far, one moved": (7, 7, 20),
    "ties, additions": (12, 12, 20),
    "ties, removals": (25, 25, 18),
    "unrelated": (25, 25, 0),
}


@pytest.mark.parametrize("kind", COSTS)
def test_what_a_kind_of_list_costs(kind: str) -> None:
    """Of 1,000 rows in pages of 100; the next scan knows what this one learnt."""
    most, most_again, proven = COSTS[kind]
    grades = []
    for seed in range(3 if kind == "unrelated" else SEEDS):
        rows = KINDS[kind](1000, 100, Random(seed))
        reader, proof = rows.read()
        assert_true(rows, reader, proof)
        again = replace(rows, states=[], shown=[], asked=[], stale=True)
        reader, second = again.read(proof, Before(proof.places or proof.rows))
        assert_true(again, reader, second)
        assert proof.requests <= most * 10, seed
        assert second.requests <= most_again * 10, seed
        grades.append(proof.grade)
    assert sum(grade is not Grade.PARTIAL for grade in grades) >= proven
    if kind.startswith("repeated") and "moved" not in kind:
        assert set(grades) == {Grade.COMPLETE}


@pytest.mark.parametrize("near", [True, False])
def test_each_repeated_row_is_counted_once(*, near: bool) -> None:
    for seed in range(SEEDS):
        rows = repeated(1000, 100, Random(seed), near=near)
        reader, proof = rows.read()
        assert (proof.rows, proof.repeats) == (1000, 10), seed
        far = {rows.shown[number][row] for number, row in reader.repeated}
        assert far <= {row for row, often in rows.states[0].items() if often == 2}
        assert near or far, seed
