"""What pages say of their place in a list, right and wrong, and what a reading makes of it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from pipelines.api import paging
from pipelines.api.chain import Before, Chain
from pipelines.api.page import Page
from pipelines.api.stitch import Taken
from pipelines.state.proof import Grade, Proof
from tests.api.moving import ANSWER, drive, page

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

    async def take(self, offset: int) -> Taken:
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
        return drive(Chain(self.take, Before(57)).read("id"))


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


# What is said, on which answers, the grade, and a flag or the reason.
LIES: list[tuple[Lie, int, Grade, str]] = [
    (nowhere, 1, Grade.COMPLETE, "has_more without next_offset at offset 7"),
    (nowhere, 3, Grade.COMPLETE, ""),
    (leaping, 1, Grade.COMPLETE, "next_offset 24 leaves out rows at offset 7"),
    (standing, 1, Grade.NOT_PROVEN, "server does not advance (offset 0 -> 0)"),
    (standing, 3, Grade.COMPLETE, ""),
    (emptied, 1, Grade.NOT_PROVEN, "has_more is true at offset 7, and nothing more comes"),
    (emptied, 3, Grade.COMPLETE, ""),
    (still_more, 1, Grade.NOT_PROVEN, "has_more is true at offset 54, and nothing more comes"),
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
    assert len(lying.asked) < 40
    if grade is Grade.COMPLETE:
        assert lying.union == set(range(57))


def test_a_service_that_ignores_the_offset_is_not_read_for_ever() -> None:
    async def take(offset: int) -> Taken:
        keys = [b"%d" % row for row in range(10)]
        return Taken(Page(offset, 10, 10, True, offset + 10, ANSWER), 0, keys)

    proof = drive(Chain(take).read("id"))
    assert proof.grade is Grade.NOT_PROVEN
    assert proof.reason.startswith("no proof within 53 requests: the list changes too much")


def test_a_service_that_filters_after_paging_is_read_by_its_offsets() -> None:
    """Of 100 rows every fourth is left out of its page, whose offsets still count it."""

    async def take(offset: int) -> Taken:
        found = [row for row in range(offset, min(100, offset + 10)) if row % 4]
        more = offset + 10 < 100
        told = Page(offset, 10, len(found), more, offset + 10 if more else None, ANSWER)
        union.update(found)
        return Taken(told, 0, [b"%d" % row for row in found])

    union: set[int] = set()
    proof = drive(Chain(take).read("id"))
    assert proof.grade is Grade.COMPLETE
    assert len(union) == 75
