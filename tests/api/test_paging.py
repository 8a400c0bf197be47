"""What pages say of their place in a list, right and wrong, and what a reading makes of it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from pipelines.api import paging
from pipelines.api.before import Before
from pipelines.api.page import Page
from pipelines.api.reader import Reader
from pipelines.api.stitch import Taken
from pipelines.state.proof import Grade, Proof
from tests.api.moving import ANSWER, drive, page
from tests.api.unstable import ties

# Page (offset, limit, rows, has_more, next_offset) and the offset behind it.
ENDS: list[tuple[tuple[int, int, int, bool, int | None], int]] = [
    ((0, 10, 10, True, 10), 10),
    ((0, 10, 6, False, None), 6),
    ((20, 10, 10, True, None), 30),
    ((20, 10, 7, True, 27), 27),
    ((20, 10, 7, True, 30), 30),  # it filters after paging: its offsets count what it left out
    ((20, 10, 0, True, 30), 30),
    ((20, 10, 7, True, 31), 27),  # rows are left out: the hole is read
    ((20, 10, 10, True, 37), 30),
    ((20, 10, 11, True, 30), 31),
    ((20, 10, 7, True, 20), 27),
]


@pytest.mark.parametrize(("said", "end"), ENDS)
def test_where_a_page_ends(said: tuple[int, int, int, bool, int | None], end: int) -> None:
    assert paging.end(Page(*said, ANSWER)) == end


@pytest.mark.parametrize(
    ("limit", "rows"), [(1, 0), (2, 1), (3, 2), (4, 3), (50, 3), (100, 3), (101, 5), (500, 5)]
)
def test_how_many_rows_pages_share(limit: int, rows: int) -> None:
    assert paging.overlap(limit) == rows


Lie = Callable[[Page], Page]


@dataclass
class Lying:
    """A list of 57 rows that keeps still; every n-th answer says something that is not so."""

    lie: Lie
    every: int = 1
    asked: list[int] = field(default_factory=list)
    union: set[int] = field(default_factory=set)

    async def take(self, offset: int, _step: int = 0) -> Taken:
        self.asked.append(offset)
        rows = list(range(57))
        told = page(rows, offset, 10)
        if len(self.asked) % self.every == 0:
            told = self.lie(told)
        found = rows[offset : offset + 10][: told.rows]
        self.union |= set(found)
        keys = [b"%d" % row for row in found]
        return Taken(told, len(self.asked) - 1, keys)

    def read(self) -> Proof:
        return drive(Reader(self.take, Before(57)).read("id"))


def still_more(told: Page) -> Page:
    return replace(told, has_more=True, next_offset=told.offset + told.rows)


def nowhere(told: Page) -> Page:
    return replace(told, next_offset=None)


def leaping(told: Page) -> Page:
    return replace(told, next_offset=(told.next_offset or 0) + 7) if told.has_more else told


def standing(told: Page) -> Page:
    return replace(told, next_offset=told.offset) if told.has_more else told


def emptied(told: Page) -> Page:
    return replace(told, rows=0) if told.has_more else told


def over(told: Page) -> Page:
    return replace(told, has_more=False, next_offset=None)


def halved(told: Page) -> Page:
    return replace(told, limit=5, rows=min(5, told.rows), has_more=told.offset + 5 < 57)


MORE = "has_more is true at offset"
AGAINST = "The service contradicts itself: "
# What is said, on which answers, the grade, and a flag or the reason.
LIES: list[tuple[Lie, int, Grade, str]] = [
    (nowhere, 1, Grade.COMPLETE, "has_more without next_offset at offset 7"),
    (nowhere, 3, Grade.COMPLETE, ""),
    (leaping, 1, Grade.COMPLETE, "next_offset 24 leaves out rows at offset 7"),
    (standing, 1, Grade.PARTIAL, f"{AGAINST}next_offset does not advance (offset 0 -> 0)"),
    (standing, 3, Grade.COMPLETE, ""),
    (emptied, 1, Grade.PARTIAL, f"{AGAINST}{MORE} 5, and nothing more comes"),
    (emptied, 3, Grade.COMPLETE, ""),
    (
        still_more,
        1,
        Grade.PARTIAL,
        f"{AGAINST}{MORE} 54, and nothing more comes",
    ),
    (over, 1, Grade.COMPLETE, "has_more false at offset 0, and rows behind it"),
    (over, 3, Grade.COMPLETE, "has_more false at offset 14, and rows behind it"),
    (halved, 1, Grade.COMPLETE, ""),
]


@pytest.mark.parametrize(("lie", "every", "grade", "words"), LIES)
def test_what_a_reading_makes_of_what_is_not_so(
    lie: Lie, every: int, grade: Grade, words: str
) -> None:
    lying = Lying(lie, every)
    proof = lying.read()
    assert proof.grade is grade
    assert words in [proof.reason, *proof.flags, ""]
    assert len(lying.asked) < 60
    assert proof.places in {None, 57}
    if lie is not emptied or grade is Grade.COMPLETE:
        assert lying.union == set(range(57))


def test_a_service_that_ignores_the_offset_is_not_read_for_ever() -> None:
    async def take(offset: int, _step: int) -> Taken:
        keys = [b"%d" % row for row in range(10)]
        return Taken(Page(offset, 10, 10, True, offset + 10, ANSWER), 0, keys)

    proof = drive(Reader(take).read("id"))
    assert proof.grade is Grade.PARTIAL
    assert proof.reason == f"{AGAINST}has_more is true at offset 135, and pages do not end"
    assert (proof.rows, proof.not_seen) == (10, None)
    assert proof.requests <= 25


def test_a_service_that_filters_after_paging_is_read_and_partial() -> None:
    """Of 100 rows every fourth is left out of its page, whose offsets still count it."""

    async def take(offset: int, _step: int) -> Taken:
        found = [row for row in range(offset, min(100, offset + 10)) if row % 4]
        more = offset + 10 < 100
        told = Page(offset, 10, len(found), more, offset + 10 if more else None, ANSWER)
        union.update(found)
        return Taken(told, 0, [b"%d" % row for row in found])

    union: set[int] = set()
    proof = drive(Reader(take).read("id"))
    assert (proof.grade, proof.not_seen) == (Grade.PARTIAL, None)
    assert proof.reason.startswith(f"{AGAINST}the page at offset 0 has 7 of 10 rows")
    assert len(union) == proof.rows == 75


@pytest.mark.parametrize("known", [0, 1000])
def test_a_list_without_an_end_is_not_read_for_ever(known: int) -> None:
    """Its pages are those of a list of 100 rows, over and over, or new ones where it is known."""

    async def take(offset: int, _step: int) -> Taken:
        rows = range(offset, offset + 100)
        keys = [b"%d" % (row if known else row % 100) for row in rows]
        return Taken(Page(offset, 100, 100, True, offset + 100, ANSWER), 0, keys)

    proof = drive(Reader(take, Before(known)).read("id"))
    assert proof.grade is Grade.PARTIAL
    assert proof.reason.endswith(", and pages do not end")
    assert proof.places is None


@pytest.mark.parametrize("tie", [1, 7])
def test_a_list_that_grew_from_ten_rows_to_thousands_is_not_called_endless(tie: int) -> None:
    unstable = ties(tie, 4000, 100, Random(1))
    _reader, proof = unstable.read(before=Before(10))
    assert proof.grade is (Grade.COMPLETE if tie == 1 else Grade.COMPLETE_BY_COUNT)


def test_a_full_last_page_is_looked_behind_in_the_first_reading() -> None:
    """It says that it is the last, and 1,500 rows follow; nobody knows how long the list is."""

    async def take(offset: int, _step: int) -> Taken:
        told = page(rows, offset, 100)
        asked.append(offset)
        told = over(told) if told.offset == 1455 else told
        return Taken(told, len(asked) - 1, [b"%d" % row for row in rows[offset : offset + 100]])

    rows, asked = list(range(2900)), list[int]()
    proof = drive(Reader(take).read("id"))
    assert (proof.grade, proof.rows) == (Grade.COMPLETE, 2900)
    assert proof.flags == ("has_more false at offset 1455, and rows behind it",)
    assert asked[16] == 1555
