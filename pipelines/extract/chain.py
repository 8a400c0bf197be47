"""Overlapping pages: a chain of pages that share rows holds every row that was there throughout.

Here: how pages are joined, and what one chain shows by itself. Not here: what several chains show
together (`agreement.py`).
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipelines.extract.pager import Pager
from pipelines.extract.pages import (
    ROW,
    Numbers,
    Page,
    Purpose,
    RowArray,
    Steps,
    is_distinct,
    is_in,
    number_copies,
)

# Rows that a page shares with the one before; more of them once rows have come or gone.
OVERLAP = 3
OVERLAP_AFTER_CHANGE = 5
# Rows of the chain before the overlap in which shared rows are looked for.
MARGIN = 8
# Pages of a chain that may fail to join, besides one page in ten.
MOST_FAILED_JOINS = 3
# Pages in a row that may show nothing new.
MOST_PAGES_IN_VAIN = 3
# Pages with fewer rows share too few: two orders agree by chance. Of 2,000 shuffled lists of 10
# rows, one was COMPLETE with a row missing (docs/decisions.md).
SMALL = 10
# Pages at the head until they meet the chain.
MOST_HEAD_PAGES = 8


class Shared(NamedTuple):
    """A row that a page shares with the chain: its places on the page, and in the chain's tail."""

    on_page: int
    in_tail: int


class Chain:
    """One pass over a list by overlapping pages, joined by the rows that they share.

    `inserted` counts rows that came before rows already read, `removed` those that went, `hidden`
    places on pages that showed no row, `failed_joins` pages that did not join, or not in order.
    `swapped`: two pages showed two orders. `ended`: the end of the list was reached. `meets_head`:
    the head was read again, and its rows are in order; `head` are the rows that were added there,
    which `length` does not count. `head_differs`: an added row without a key may equal another one.
    """

    def __init__(self, page: Page) -> None:
        self.keyed = page.key is not None
        self.failed_joins = 0
        self.largest_shift = 0
        self.swapped = False
        self.ended = False
        self.meets_head = False
        self.head_differs = False
        self.end = 0
        self.head = np.empty(0, ROW)
        self._has_gap = False
        self._begin(page)

    def rows(self) -> RowArray:
        """Return its rows in order, those added at the head first."""
        return np.concatenate([self.head, *self._parts])

    def marks(self) -> Numbers:
        """Return the marks of its rows in order, without those added at the head."""
        return np.concatenate([part["mark"] for part in self._parts])

    def join(self, page: Page, back: int) -> bool:
        """Continue with a page that was requested `back` rows before the end, if it joins.

        From the first shared row on, the rows of the newer page replace those of the older.
        """
        if self.end == back:
            self._begin(page)
            return True
        tail = self._pop(back + MARGIN)
        rows = page.rows()
        shared = self._find_join(tail["mark"].tolist(), rows["mark"].tolist(), back)
        if shared is None:
            self.failed_joins += 1
            self._append(tail)
            return False
        self._note_shift(int(rows["offset"][shared.on_page] - tail["offset"][shared.in_tail]))
        self.pages += 1
        self.end = page.end
        self._has_gap = page.is_short and page.has_more
        self._append(tail[: shared.in_tail])
        self._append(rows[shared.on_page :])
        return True

    def _note_shift(self, shift: int) -> None:
        """Note by how many places a shared row stands further back than on the page before."""
        if shift < 0:
            self.removed -= shift
            self.largest_shift = max(self.largest_shift, -shift)
        elif self._has_gap:
            # The page before had fewer rows than places.
            self.hidden += shift
        else:
            self.inserted += shift

    @property
    def unexplained(self) -> int:
        """How many rows that came before rows already read were not found at the head."""
        return max(0, self.inserted - len(self.head))

    def is_still(self) -> bool:
        """Return whether nothing was seen to be added or removed."""
        return not (self.inserted or self.removed or len(self.head) or self.head_differs)

    def is_unordered(self) -> bool:
        """Return whether chains are of no use, since the order of the list moves too much."""
        failures = self.failed_joins
        if self.swapped:
            failures += self.unexplained
        return failures > MOST_FAILED_JOINS + self.pages / 10

    def is_complete(self) -> bool:
        """Return whether it has every row by itself, in a list whose order never moved."""
        if not self.meets_head or self.hidden or self.has_copies():
            return False
        if self.keyed:
            return not self.unexplained
        # Without a key, equal rows may stand for one another.
        return not self.inserted and not self.removed

    def has_copies(self) -> bool:
        """Return whether a mark occurs twice."""
        return not is_distinct(np.concatenate([self.head["mark"], self.marks()]))

    def agrees(self, before: "Chain") -> bool:
        """Return whether it shows the same order and the same copies as the chain before."""
        mine = self.rows()["mark"]
        others = before.rows()["mark"]
        if not np.array_equal(_copies(mine), _copies(others)):
            return False
        return _same_order(number_copies(self.marks()), number_copies(before.marks()))

    def lost(self, before: "Chain") -> Numbers:
        """Return the marks of the chain before that it does not show."""
        others = before.rows()["mark"]
        return others[~is_in(others, self.rows()["mark"])]

    def repeats(self, before: "Chain") -> bool:
        """Return whether it shows all of the chain before, with rows added at its ends only."""
        mine = self.marks().tobytes()
        others = before.marks().tobytes()
        # numpy has no search for a sequence, but bytes have one. A mark has eight of them; a match
        # that begins within one is by chance.
        position = mine.find(others)
        while position > 0 and position % 8:
            position = mine.find(others, position + 1)
        return position >= 0

    def read_head(self, pager: Pager) -> Steps[None]:
        """Read pages from offset 0 until they meet the chain."""
        elements = number_copies(self.marks())
        head = None
        offset = 0
        for _page in range(MOST_HEAD_PAGES):
            page = yield from pager.page(offset, purpose=Purpose.HEAD)
            if head is None:
                head = Chain(page)
            elif not head.join(page, head.end - offset):
                return
            if is_in(page.elements, elements).any() or not len(page):
                self._meet(head, elements, in_order=_same_order(page.elements, elements))
                return
            offset = max(offset + 1, head.end - self.overlap(pager.size))

    def _meet(self, head: "Chain", elements: Numbers, *, in_order: bool) -> None:
        """Note what the head shows: rows that were added there, and whether the order is the same.

        `in_order`: its last page has rows of the chain in the same order; `elements` are all of the
        chain.
        """
        self.meets_head = in_order and not head.swapped
        if self.keyed:
            self.swapped |= not in_order
        else:
            begin = self.marks()[: head.length]
            self.head_differs = not np.array_equal(head.marks(), begin)
        marks, firsts = np.unique(head.marks(), return_index=True)
        added = firsts[~is_in(marks, elements)]
        self.head = head.rows()[np.sort(added)]

    def overlap(self, size: int) -> int:
        """Return how many rows the next page shares with the last, of pages of a size."""
        has_changed = self.failed_joins or self.inserted or self.removed
        rows = OVERLAP_AFTER_CHANGE if has_changed else OVERLAP
        return max(1, min(size // 2, rows + 2 * self.largest_shift))

    def _begin(self, page: Page) -> None:
        """Begin anew with the page at offset 0."""
        self.inserted = 0
        self.removed = 0
        self.hidden = 0
        self.length = 0
        self.pages = 1
        self.end = page.end
        self._has_gap = page.is_short and page.has_more
        self._parts: list[RowArray] = []
        self._append(page.rows())

    def _append(self, rows: RowArray) -> None:
        self._parts.append(rows)
        self.length += len(rows)

    def _pop(self, length: int) -> RowArray:
        """Remove and return the last rows."""
        first_part = len(self._parts)
        while first_part and length > 0:
            first_part -= 1
            length -= len(self._parts[first_part])
        rows = np.concatenate(self._parts[first_part:])
        kept = max(0, -length)
        self._parts[first_part:] = [rows[:kept]]
        self.length -= len(rows) - kept
        return rows[kept:]

    def _find_join(self, tail: list[int], marks: list[int], back: int) -> Shared | None:
        """Return the first row by which a page surely joins the chain's tail.

        Where the page was expected to join comes first: elsewhere, other rows of equal content, or
        with the same key where it does not identify a row, may stand.
        """
        shared = _find_shared(tail, marks)
        expected = Shared(0, max(0, len(tail) - back))
        if not self.keyed:
            return _join_by_content(tail, marks, [expected, *shared])
        is_swapped = any(second.in_tail < first.in_tail for first, second in pairwise(shared))
        if is_swapped:
            self.swapped = True
            self.failed_joins += 1
        elif _continues(tail, marks, expected):
            return expected
        # A second shared row must follow in order: one alone may be a row that moved.
        for first, second in pairwise(shared):
            if second.in_tail > first.in_tail:
                return first
        return None


def _find_shared(tail: list[int], marks: list[int]) -> list[Shared]:
    """Return the rows that occur once in both, in the order of the page."""
    in_tail = Counter(tail)
    on_page = Counter(marks)
    places = {mark: place for place, mark in enumerate(tail)}
    shared = []
    for row, mark in enumerate(marks):
        if in_tail[mark] == 1 and on_page[mark] == 1:
            shared.append(Shared(row, places[mark]))
    return shared


def _join_by_content(tail: list[int], marks: list[int], likely: Sequence[Shared]) -> Shared | None:
    """Return the first row from which on all rows to the end of the tail are equal."""
    for shared in likely:
        if _continues(tail, marks, shared):
            return shared
    return None


def _continues(tail: list[int], marks: list[int], shared: Shared) -> bool:
    """Return whether a page has all rows of the tail from a shared one on, two at least."""
    expected = tail[shared.in_tail :]
    return len(expected) > 1 and marks[shared.on_page : shared.on_page + len(expected)] == expected


def read_chain(pager: Pager) -> Steps[Chain]:
    """Read overlapping pages to the end, then the head.

    The chain has not `ended` if the order moves too much, if pages show nothing new or if they
    have few rows.
    """
    page = yield from pager.page(0)
    chain = Chain(page)
    joined = True
    in_vain = 0
    back = chain.overlap(pager.size)
    # A list that was longer at its last scan does not end at the first page that says so.
    while not (joined and page.is_last and (in_vain or chain.length >= pager.expected)):
        if _is_useless(chain, pager.size, in_vain):
            return chain
        length = chain.length
        back = min(back, chain.end)
        page = yield from pager.page(chain.end - back, pager.size - chain.overlap(pager.size))
        joined = chain.join(page, back)
        if not joined:
            back = max(2 * back, pager.size // 2)
            continue
        in_vain = 0 if chain.length > length else in_vain + 1
        back = chain.overlap(pager.size)
    chain.ended = True
    pager.end_pass(chain.end, chain.length)
    if len(pager.pages) > 1:
        yield from chain.read_head(pager)
    return chain


def _is_useless(chain: Chain, size: int, in_vain: int) -> bool:
    """Return whether further pages of a size would prove nothing."""
    return size < SMALL or in_vain == MOST_PAGES_IN_VAIN or chain.is_unordered()


def _copies(marks: Numbers) -> Numbers:
    """Return the marks that occur more than once, ascending, each as often as it is repeated."""
    distinct, counts = np.unique(marks, return_counts=True)
    return np.repeat(distinct, counts - 1)


def _same_order(mine: Numbers, others: Numbers) -> bool:
    """Return whether the elements that two lists share have the same order in both."""
    shared = mine[is_in(mine, others)]
    return np.array_equal(shared, others[is_in(others, mine)])
