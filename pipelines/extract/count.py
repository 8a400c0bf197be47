"""Counting: a list is complete if all its places were seen before and after its length was read."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pipelines.extract.marks import MarkedPage, Marks, Mask, Rows, number_copies


class LengthCheck(NamedTuple):
    """The number of rows that a list had between two moments.

    `elements` are the rows that its page showed: they were in the list at that moment.
    """

    page: MarkedPage
    length: int
    sent: int
    received: int
    elements: Marks


def check_length(last: MarkedPage, behind: MarkedPage) -> LengthCheck:
    """Return the length that the last page shows, with the empty page behind it.

    A full page does not show the end of the list; then the empty page does, which came later.
    """
    if last.is_short:
        return LengthCheck(last, last.end, last.sent, last.received, number_copies(last.marks))
    return LengthCheck(last, last.end, last.sent, behind.received, last.marks[:0])


@dataclass
class Sightings:
    """When each row was seen: the first answer that showed it and the last request that did.

    The i-th copy of a row on one page is an element of its own.
    """

    rows: int = 0
    _marks: Marks = field(default_factory=lambda: np.empty(0, np.uint64))
    _first: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    _last: Rows = field(default_factory=lambda: np.empty(0, np.int64))
    _pages: list[MarkedPage] = field(default_factory=list)
    _due: dict[int, int] = field(default_factory=dict)  # by check: when counting may succeed

    def add(self, page: MarkedPage) -> None:
        """Note the rows of a page."""
        self._pages.append(page)
        self.rows += len(page.marks)

    def distinct(self) -> int:
        """Return how many elements were seen."""
        self._merge()
        return len(self._marks)

    def count(self, check: LengthCheck) -> int:
        """Return how many rows were seen on both sides of a check; 0 while it cannot be all."""
        if self.rows < self._due.get(check.page.number, 0):
            return 0
        met = int(np.count_nonzero(self._on_both_sides(check)))
        # Each row that is read adds at most one.
        self._due[check.page.number] = self.rows + max(0, check.length - met)
        return met

    def _on_both_sides(self, check: LengthCheck) -> Mask:
        self._merge()
        both = (self._first < check.sent) & (self._last > check.received)
        return both | np.isin(self._marks, check.elements)

    def _merge(self) -> None:
        pages, self._pages = [page for page in self._pages if len(page.marks)], []
        if not pages:
            return
        parts = [number_copies(page.marks) for page in pages]
        lengths = [len(part) for part in parts]
        marks = np.concatenate([self._marks, *parts])
        first = np.concatenate([self._first, np.repeat([page.received for page in pages], lengths)])
        last = np.concatenate([self._last, np.repeat([page.sent for page in pages], lengths)])
        order = np.argsort(marks, kind="stable")
        marks = marks[order]
        starts = np.flatnonzero(np.concatenate(([True], marks[1:] != marks[:-1])))
        self._marks = marks[starts]
        self._first = np.minimum.reduceat(first[order], starts)
        self._last = np.maximum.reduceat(last[order], starts)
