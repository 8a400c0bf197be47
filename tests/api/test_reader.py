"""A reading as a whole: answers from a cache, lists that lie about their end, rows that move."""

from dataclasses import replace
from random import Random

import pytest

from pipelines.api.before import Before
from pipelines.api.page import Page
from pipelines.api.reader import Reader
from pipelines.api.seen import Seen, mark
from pipelines.api.stitch import Taken
from pipelines.state.proof import Grade
from tests.api.moving import ANSWER, drive, page
from tests.api.unstable import Unstable, ties

CACHED = replace(ANSWER, rate_limit={"age": "7"})


def numbered(*rows: int) -> list[bytes]:
    return [b"%d" % row for row in rows]


@pytest.mark.parametrize("answers", [{3}, {10}])
def test_an_answer_from_a_cache_is_asked_for_again_and_not_loaded(answers: set[int]) -> None:
    """It shows the list of an hour ago, which lacks the last rows and has one that is gone."""
    asked = list[int]()

    async def take(offset: int, _step: int) -> Taken:
        number, old = len(asked), len(asked) in answers
        asked.append(offset)
        rows = [*range(500), -1, *range(500, 990)] if old else range(1000)
        told = page(rows, offset, 100)
        keys = numbered(*rows[offset : offset + 100])
        return Taken(replace(told, answer=CACHED) if old else told, number, keys)

    reader = Reader(take)
    proof = drive(reader.read("id"))
    assert (proof.grade, proof.rows) == (Grade.COMPLETE, 1000)
    assert reader.stale == answers
    assert proof.requests == 12 + len(answers)
    assert "older than their requests" in proof.sentence("usage")


def test_a_list_that_only_a_cache_shows_is_loaded_and_proves_nothing() -> None:
    asked = list[int]()

    async def take(offset: int, _step: int) -> Taken:
        asked.append(offset)
        told = replace(page(range(1000), offset, 100), answer=CACHED)
        return Taken(told, len(asked) - 1, numbered(*range(1000)[offset : offset + 100]))

    reader = Reader(take)
    proof = drive(reader.read("id"))
    assert (proof.grade, proof.rows, proof.places) == (Grade.PARTIAL, 1000, None)
    assert reader.stale == set()  # there is nothing else to load
    assert proof.reason == "No answer showed where the list ends"
    assert len(asked) <= 60


@pytest.mark.parametrize("number", [0, 1, 5])
def test_a_short_page_that_says_it_is_the_last_is_looked_behind_where_rows_are_lacking(
    number: int,
) -> None:
    def lie(told: Page) -> Page:
        early = len(rows.asked) == number + 1
        return replace(told, rows=60, has_more=False, next_offset=None) if early else told

    rows = replace(ties(1, 1000, 100, Random(1)), lie=lie)
    _reader, proof = rows.read(before=Before(1000))
    assert (proof.grade, proof.rows) == (Grade.COMPLETE, 1000)
    assert proof.flags == (f"has_more false at offset {rows.asked[number]}, and rows behind it",)


def test_a_list_that_shrank_is_looked_behind_once() -> None:
    quiet = ties(1, 950, 100, Random(1)).read(before=Before(950))[1]
    proof = ties(1, 950, 100, Random(1)).read(before=Before(1000))[1]
    assert (proof.grade, proof.rows) == (Grade.COMPLETE, 950)
    assert proof.requests == quiet.requests + 1


def test_pages_that_never_end_and_show_one_known_row_end() -> None:
    asked = list[int]()

    async def take(offset: int, _step: int) -> Taken:
        number = len(asked)
        asked.append(offset)
        told = Page(offset, 10, 10, True, offset + 10, ANSWER)
        return Taken(told, number, numbered(7, *range(100 * number + 100, 100 * number + 109)))

    proof = drive(Reader(take).read("id"))
    assert proof.grade is Grade.PARTIAL
    assert "shows other rows each time it is requested" in proof.reason
    assert len(asked) <= 100


def test_pages_of_one_row_prove_nothing_and_end() -> None:
    proof = ties(1, 60, 1, Random(1)).read()[1]
    assert (proof.grade, proof.rows, proof.places) == (Grade.PARTIAL, 60, None)
    assert proof.reason == "No answer showed where the list ends"
    assert proof.requests <= 5 * 61


def move_into_the_part_that_was_read(rows: Unstable, number: int) -> None:
    if number == 5:
        rows.groups.insert(250, [rows.pop(930)])


def insert_into_the_part_that_was_read(rows: Unstable, number: int) -> None:
    if number == 5:
        rows.groups.insert(250, [next(rows.new)])
        rows.stale = True


def test_a_row_that_moves_to_where_it_is_not_looked_for_is_read_all_the_same() -> None:
    """Only the number of rows shows it: the list has one place more than rows were read."""
    rows = replace(ties(1, 1000, 100, Random(1)), change=move_into_the_part_that_was_read)
    proof = rows.read()[1]
    assert (proof.grade, proof.chains, proof.rows) == (Grade.COMPLETE, 2, 1000)
    assert proof.requests <= 24


def test_a_list_is_not_read_again_for_rows_that_are_new() -> None:
    """Every row of the last reading was seen again: what is lacking was added since."""
    order = Seen()
    order.add((row, mark(b"%d" % row)) for row in range(1000))
    rows = replace(ties(1, 1000, 100, Random(1)), change=insert_into_the_part_that_was_read)
    proof = rows.read(before=Before(1000, order))[1]
    assert (proof.grade, proof.chains, proof.rows) == (Grade.COMPLETE, 1, 1000)
    moved = replace(ties(1, 1000, 100, Random(1)), change=move_into_the_part_that_was_read)
    assert moved.read(before=Before(1000, order))[1].chains == 2
