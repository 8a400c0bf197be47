"""Overlapping pages: a chain of pages that share rows holds every row that was there throughout."""

from collections import Counter
from itertools import pairwise

import numpy as np

from pipelines.extract.pager import Pager
from pipelines.extract.pages import (
    ROW,
    Numbers,
    Page,
    Purpose,
    Rows,
    Steps,
    is_distinct,
    is_in,
    number_copies,
)

OVERLAP = 3  # rows that a page shares with the one before
AFTER_TROUBLE = 5
MARGIN = 8  # rows of the chain before the overlap in which shared rows are looked for
BREAKS = 3  # of a chain, besides one page in ten
IN_VAIN = 3  # pages in a row that show nothing new
SMALL = 10  # pages with fewer rows share too few to prove anything: two orders agree by chance
HEADS = 8  # pages at the head until they meet the chain


class Chain:
    """Pages joined by rows that they share.

    `inserted` counts rows that came before rows already read, `removed` those that went, `hidden`
    places on pages that showed no row, `breaks` pages that did not join, or not in order.
    `swapped`: two pages showed two orders. `ended`: the end of the list was reached. `meets_head`:
    the head was read again, and its rows are in order; `head` are the rows that were added there,
    which `length` does not count. `head_differs`: an added row without a key may equal another one.
    """

    def __init__(self, page: Page) -> None:
        self.keyed = page.key is not None
        self.breaks = self.largest_shift = 0
        self.swapped = self.ended = self.meets_head = self.head_differs = False
        self.end = 0
        self.head = np.empty(0, ROW)
        self._has_gap = False
        self._begin(page)

    def rows(self) -> Rows:
        """Return its rows in order, those added at the head first."""
        return np.concatenate([self.head, *self._parts])

    def marks(self) -> Numbers:
        """Return the marks of its rows in order, without those added at the head."""
        return np.concatenate([part["mark"] for part in self._parts])

    def join(self, page: Page, back: int) -> bool:
        """Continue with a page that was requested `back` rows before the end, if it joins."""
        if self.end == back:
            self._begin(page)
            return True
        tail = self._pop(back + MARGIN)
        rows = page.rows()
        row, place = self._shared(tail["mark"].tolist(), rows["mark"].tolist(), back)
        if place < 0:
            self.breaks += 1
            self._append(tail)
            return False
        shift = int(rows["place"][row] - tail["place"][place])
        if self._has_gap:  # the page before had fewer rows than places
            self.hidden += max(0, shift)
        else:
            self.inserted += max(0, shift)
        self.removed += max(0, -shift)
        self.largest_shift = max(self.largest_shift, -shift)
        self.pages += 1
        self.end = page.end
        self._has_gap = page.is_short and page.has_more
        self._append(tail[:place])
        self._append(rows[row:])
        return True

    @property
    def unexplained(self) -> int:
        """How many rows that came before rows already read were not found at the head."""
        return max(0, self.inserted - len(self.head))

    def is_still(self) -> bool:
        """Return whether nothing was seen to be added or removed."""
        return not (self.inserted or self.removed or len(self.head) or self.head_differs)

    def is_unordered(self) -> bool:
        """Return whether chains are of no use, since the order of the list moves too much."""
        breaks = self.breaks + (self.unexplained if self.swapped else 0)
        return breaks > BREAKS + self.pages / 10

    def is_proof(self) -> bool:
        """Return whether it is one by itself, in a list whose order never moved."""
        if not self.meets_head or self.hidden or self.has_copies():
            return False
        return not (self.unexplained if self.keyed else self.inserted or self.removed)

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
        at = mine.find(others)
        while at > 0 and at % 8:
            at = mine.find(others, at + 1)
        return at >= 0

    def read_head(self, pager: Pager) -> Steps[None]:
        """Read pages from offset 0 until they meet the chain."""
        elements = number_copies(self.marks())
        head = None
        offset = 0
        for _page in range(HEADS):
            page = yield from pager.page(offset, purpose=Purpose.HEAD)
            if head is None:
                head = Chain(page)
            elif not head.join(page, head.end - offset):
                return
            if is_in(page.elements, elements).any() or not len(page):
                in_order = _same_order(page.elements, elements)
                self.meets_head = in_order and not head.swapped
                begin = self.marks()[: head.length]
                self.head_differs = not self.keyed and not np.array_equal(head.marks(), begin)
                self.swapped |= self.keyed and not in_order
                marks, first = np.unique(head.marks(), return_index=True)
                first = first[~is_in(marks, elements)]
                self.head = head.rows()[np.sort(first)]
                return
            offset = max(offset + 1, head.end - self.overlap(pager.size))

    def overlap(self, size: int) -> int:
        """Return how many rows the next page shares with the last, of pages of a size."""
        rows = AFTER_TROUBLE if self.breaks or self.inserted or self.removed else OVERLAP
        return max(1, min(size // 2, rows + 2 * self.largest_shift))

    def _begin(self, page: Page) -> None:
        """Begin anew with the page at offset 0."""
        self.inserted = self.removed = self.hidden = self.length = 0
        self.pages = 1
        self.end = page.end
        self._has_gap = page.is_short and page.has_more
        self._parts: list[Rows] = []
        self._append(page.rows())

    def _append(self, rows: Rows) -> None:
        self._parts.append(rows)
        self.length += len(rows)

    def _pop(self, length: int) -> Rows:
        """Remove and return the last rows."""
        at = len(self._parts)
        while at and length > 0:
            at -= 1
            length -= len(self._parts[at])
        rows = np.concatenate(self._parts[at:])
        kept = max(0, -length)
        self._parts[at:] = [rows[:kept]]
        self.length -= len(rows) - kept
        return rows[kept:]

    def _shared(self, tail: list[int], rows: list[int], back: int) -> tuple[int, int]:
        """Return row and place of the first shared row that proves a join; -1, -1 without one.

        Where the page was expected to join comes first: elsewhere, other rows of equal content, or
        with the same key where it does not identify a row, may stand. With keys, another shared row
        must follow it in order; without, all rows to the end of the tail must be equal.
        """
        there = Counter(tail)
        here = Counter(rows)
        places = {mark: place for place, mark in enumerate(tail) if there[mark] == here[mark] == 1}
        known = [(row, places[mark]) for row, mark in enumerate(rows) if mark in places]
        unordered = any(second < first for (_, first), (_, second) in pairwise(known))
        if self.keyed and unordered:
            self.swapped = True
            self.breaks += 1
        expected = (0, max(0, len(tail) - back))
        if not self.keyed:
            likely = [expected, *known]
            joins = [(row, at) for row, at in likely if _continues(tail[at:], rows[row:])]
        elif not unordered and _continues(tail[expected[1] :], rows):
            joins = [expected]
        else:
            joins = [first for first, second in pairwise(known) if second[1] > first[1]]
        return joins[0] if joins else (-1, -1)


def read_chain(pager: Pager) -> Steps[Chain]:
    """Read overlapping pages to the end, then the head.

    The chain has not `ended` if the order moves too much, if pages show nothing new or if they
    have few rows.
    """
    page = yield from pager.page(0)
    chain = Chain(page)
    joined = True
    vain = 0
    back = chain.overlap(pager.size)
    while not (joined and page.is_last and (vain or chain.length >= pager.expected)):
        if pager.size < SMALL or vain == IN_VAIN or chain.is_unordered():
            return chain
        length = chain.length
        back = min(back, chain.end)
        page = yield from pager.page(chain.end - back, pager.size - chain.overlap(pager.size))
        joined = chain.join(page, back)
        if joined:
            vain = 0 if chain.length > length else vain + 1
            back = chain.overlap(pager.size)
        else:
            back = max(2 * back, pager.size // 2)
    chain.ended = True
    pager.end_pass(chain.end, chain.length)
    if len(pager.pages) > 1:
        yield from chain.read_head(pager)
    return chain


def _continues(tail: list[int], rows: list[int]) -> bool:
    return len(tail) > 1 and rows[: len(tail)] == tail


def _copies(marks: Numbers) -> Numbers:
    """Return the marks that occur more than once, ascending, each as often as it is repeated."""
    distinct, counts = np.unique(marks, return_counts=True)
    return np.repeat(distinct, counts - 1)


def _same_order(mine: Numbers, others: Numbers) -> bool:
    """Return whether the elements that two lists share have the same order in both."""
    return np.array_equal(mine[is_in(mine, others)], others[is_in(others, mine)])
