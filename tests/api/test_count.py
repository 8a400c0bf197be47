"""The proof by count: what is seen on both sides of a length check, and when passes end."""

from dataclasses import replace
from random import Random

import pytest

from pipelines.api.before import Before
from pipelines.api.count import Count
from pipelines.api.reader import ANCHORED_AGAIN, Reader
from pipelines.api.seen import mark
from pipelines.api.source import NO_MARK, Shown
from pipelines.api.stitch import Taken
from pipelines.state.proof import Grade, Proof
from tests.api.moving import drive, page
from tests.api.unstable import Unstable, repeated_and_moved, ties
from tests.virtual import EPOCH

LIMIT = 5


def counted(*pages: tuple[int, str], stale: int = -1) -> list[int]:
    """Return how many rows were met after each page; its keys are letters, `-` has none.

    The page in the middle is the length check.
    """
    count, met, check = Count(keyed=True), [], None
    for number, (offset, keys) in enumerate(pages):
        marks = b"".join(NO_MARK if key == "-" else mark(key.encode()) for key in keys)
        shown = Shown(offset, LIMIT, len(keys), number, number == stale, marks)
        count.see(shown)
        if number == len(pages) // 2:
            check = count.check(shown, 0, EPOCH)
        met.append(count.met(check) if check else 0)
    return met


# Pages by offset and keys, the length check in the middle; the rows met at the end.
COUNTS: list[tuple[list[tuple[int, str]], int]] = [
    ([(0, "abc"), (3, "d"), (0, "abc")], 4),
    ([(0, "abc"), (3, "d"), (0, "xyz")], 1),  # only the page itself
    ([(0, "a"), (0, "bc"), (3, "d"), (0, "bc"), (0, "ac")], 4),
    ([(0, "aab"), (3, "d"), (0, "aab")], 4),  # twice on both sides
    ([(0, "aab"), (3, "d"), (0, "ab")], 3),  # the smaller of the two numbers
    ([(0, "ab"), (3, "dd"), (0, "ab")], 4),  # twice on the page itself
    ([(0, "a-"), (3, "d"), (0, "a-")], 2),  # a row without a key counts with its key, or never
]


@pytest.mark.parametrize(("pages", "met"), COUNTS)
def test_a_row_counts_that_was_seen_on_both_sides(pages: list[tuple[int, str]], met: int) -> None:
    assert counted(*pages)[-1] == met


def test_an_answer_older_than_its_request_is_no_evidence() -> None:
    assert counted((0, "abc"), (3, "d"), (0, "abc"), stale=2)[-1] == 1
    assert counted((0, "abc"), (3, "d"), (0, "abc"), stale=0)[-1] == 1


def test_a_key_at_distant_places_counts_once_however_often_it_was_seen_there() -> None:
    """It may have moved there and back."""
    old, new, check = (0, "abXcd"), (20, "efXgh"), (30, "z")
    assert counted(old, new, old, check, new, old, new)[-1] == 10


@pytest.mark.parametrize("rows", [0, 1, 99, 100, 101, 300, 350])
def test_a_counted_list_has_the_length_of_its_last_page(rows: int) -> None:
    """Where the last page is full and an empty one follows, half a page back shows the length."""
    unstable = ties(7, rows, 100, Random(rows))
    last = replace(ties(7, 300, 100, Random(1)).read()[1], order_moves=True)
    _reader, proof = unstable.read(last, Before(300))
    assert (proof.grade, proof.places, proof.rows) == (Grade.COMPLETE_BY_COUNT, rows, rows)
    assert proof.requests <= 50


def test_a_list_is_read_to_its_end_twice_before_time_or_budget_end_it() -> None:
    unstable = ties(1000, 1000, 100, Random(1))
    reader = Reader(unstable.take, late=lambda: True)
    proof = drive(reader.read("id"))
    assert proof.reason == "Its rows were not counted within sync_max_minutes"
    assert reader.passes
    assert reader.passes.passes == 2
    assert 20 <= proof.requests <= 30
    assert (proof.places, proof.not_seen) == (1000, 1000 - proof.rows)


def test_rows_added_at_every_fifth_request_are_counted_all_the_same() -> None:
    """The length is another one at each check, so the head is read before it."""

    def change(rows: Unstable, number: int) -> None:
        if number % 5 == 0:
            rows.add(next(rows.new), head=True)

    unstable = replace(ties(7, 1000, 100, Random(1)), change=change)
    _reader, proof = unstable.read()
    assert proof.grade is Grade.COMPLETE_BY_COUNT
    assert proof.requests <= 120


def test_passes_that_show_nothing_new_end_early() -> None:
    """Ten rows are never shown: the service has places for them and shows others twice."""

    async def take(offset: int, _step: int) -> Taken:
        shown = order.sample(range(990), 100) if offset < 900 else range(offset, offset + 100)
        keys = [b"%d" % (row % 990) for row in shown][: max(0, 995 - offset)]
        asked.append(offset)
        return Taken(page(range(995), offset, 100), len(asked) - 1, keys)

    order, asked = Random(2), list[int]()
    proof = drive(Reader(take).read("id"))
    assert proof.grade is Grade.PARTIAL
    assert proof.not_seen is None or proof.not_seen == 5
    assert len(asked) <= 250


def test_a_list_whose_order_moves_is_counted_from_the_start_six_times_of_seven() -> None:
    """Then anchored pages are tried again: by then it is sorted by a unique field."""
    last: Proof | None = None
    for scan in range(ANCHORED_AGAIN):
        reader, last = ties(7, 1000, 100, Random(scan)).read(last, Before(1000 if scan else 0))
        assert (last.grade, last.order_moves) == (Grade.COMPLETE_BY_COUNT, True)
        assert last.anchored_skipped == scan
        assert (last.chains == 0) is (scan > 0)
        assert reader.stitched == []
    _reader, proof = ties(1, 1000, 100, Random(1)).read(last, Before(1000))
    assert (proof.grade, proof.order_moves, proof.anchored_skipped) == (Grade.COMPLETE, False, 0)
    _reader, proof = ties(1, 1000, 100, Random(1)).read(proof, Before(1000))
    assert proof.requests == 12


def test_a_list_with_repeats_of_which_a_row_moved_is_read_once_more() -> None:
    """What moved into the part that was read already shows only in the number of rows."""
    for seed in range(20):
        unstable = repeated_and_moved(1000, 100, Random(seed), near=bool(seed % 2))
        reader, proof = unstable.read()
        assert (proof.grade, proof.order_moves) == (Grade.COMPLETE, False), seed
        assert (proof.repeats, proof.rows, reader.passes) == (10, 1000, None)
        assert {row for shown in unstable.shown for row in shown} == set(range(1000))
    assert proof.chains == 2


def suspects_asked(near: bool) -> list[int]:  # noqa: FBT001 a table of two
    """Return what is asked for beside the pages of a list with one repeated row."""
    unstable = ties(1, 1000, 100, Random(1))
    unstable.groups.insert(150 if near else 850, [120])
    reader, proof = unstable.read()
    assert (proof.grade, proof.repeats, proof.rows) == (Grade.COMPLETE, 1, 1000)
    assert bool(reader.repeated) is not near
    quiet = ties(1, 1001, 100, Random(1))
    quiet.read()
    return [offset for offset in unstable.asked if offset not in quiet.asked]


def test_the_old_place_of_a_repeated_row_is_asked_for_once() -> None:
    assert suspects_asked(near=True) == []  # one page showed both
    assert suspects_asked(near=False) == [119]  # with the row before it
