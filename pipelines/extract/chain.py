"""Overlapping pages: a chain of pages that share rows holds every row that was there throughout."""

from array import array
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipelines.extract.marks import MarkedPage, Marks, find_copies, is_ascending, number_copies

MARGIN = 8  # rows of the chain before the overlap in which shared rows are looked for


class Piece(NamedTuple):
    """Rows of a page, from row `first` on, that continue the chain at place `start`."""

    page: MarkedPage
    first: int
    start: int


class Used(NamedTuple):
    """Rows of one page, as half-open range."""

    page: MarkedPage
    first: int
    end: int


@dataclass
class Chain:
    """Pages joined by rows that they share.

    `inserted` counts rows that came before rows already read, `removed` those that went;
    `swapped` tells that two pages showed two orders; `breaks` counts pages that did
    not join, or not in order; `presumed` tells that a page without keys joined where it should if
    nothing changed, by rows that are not unique. `meets_head` tells that the head was read again
    and its rows are in order, `ended` that the chain reached the end of the list.
    """

    keyed: bool
    inserted: int = 0
    removed: int = 0
    swapped: bool = False
    breaks: int = 0
    presumed: bool = False
    ended: bool = False
    meets_head: bool = False
    largest_shift: int = 0
    end: int = 0
    _expected: int = 0  # the offset at which the row that joins was last seen
    pieces: list[Piece] = field(default_factory=list)
    head: list[Used] = field(default_factory=list)  # rows that were added at the head
    _marks: "array[int]" = field(default_factory=lambda: array("Q"))

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._marks)

    @property
    def marks(self) -> Marks:
        """The marks of its rows, in order."""
        return np.array(self._marks, np.uint64)

    def begin(self, page: MarkedPage) -> None:
        """Begin anew with the page at offset 0."""
        self.inserted = self.removed = 0
        self.pieces, self._marks = [], array("Q")
        self._append(page, 0)

    def join(self, page: MarkedPage, back: int) -> bool:
        """Continue with a page that was requested `back` rows before the end, if it joins."""
        base = max(0, len(self._marks) - back - MARGIN)
        tail, rows = self._marks[base:].tolist(), page.marks.tolist()
        places = {mark: at for at, mark in enumerate(tail) if tail.count(mark) == 1}
        known = [
            (row, places[mark])
            for row, mark in enumerate(rows)
            if mark in places and rows.count(mark) == 1
        ]
        if not is_ascending([place for _row, place in known]):
            self.swapped = True
            self.breaks += 1
        shared = self._shared(known, back) if self.keyed else _matching(known, tail, rows)
        if shared is None and not self.keyed and back > 1 and rows[:back] == tail[-back:]:
            self.presumed, shared = True, (0, len(tail) - back)
        if shared is None:
            self.breaks += 1
            return False
        self._cut(base + shared[1])
        self._append(page, shared[0])
        return True

    def used(self) -> list[Used]:
        """Return which rows of which pages make up the chain, with the rows added at the head."""
        ends = [piece.start for piece in self.pieces[1:]] + [len(self._marks)]
        kept = [
            Used(piece.page, piece.first, piece.first + end - piece.start)
            for piece, end in zip(self.pieces, ends, strict=True)
        ]
        return self.head + kept

    def order(self) -> Marks:
        """Return the marks of all used rows, in order."""
        head = [used.page.marks[used.first : used.end] for used in self.head]
        return np.concatenate([*head, self.marks])

    def agrees(self, other: "Chain") -> bool:
        """Return whether a chain shows the same order and the same copies as the one before."""
        mine, others = self.order(), other.order()
        for copies, expected in zip(find_copies(mine), find_copies(others), strict=True):
            if not np.array_equal(copies, expected):
                return False
        if not self.is_explained() and not np.isin(others, mine).all():
            return False
        mine, others = number_copies(self.marks), number_copies(other.marks)
        return np.array_equal(
            mine[np.isin(mine, others, assume_unique=True)],
            others[np.isin(others, mine, assume_unique=True)],
        )

    def repeats(self, other: "Chain") -> bool:
        """Return whether a chain shows all of the one before, with rows added at its ends only."""
        mine, others = self.marks.tobytes(), other.marks.tobytes()
        start = mine.find(others)
        while start % 8:
            start = -1 if start < 0 else mine.find(others, start + 1)
            if start < 0:
                return False
        return True

    def is_explained(self) -> bool:
        """Return whether all rows that came before rows already read were found at the head."""
        return self.inserted <= len(self.head)

    def is_ambiguous(self) -> bool:
        """Return whether equal rows without a key could have been mistaken for one another."""
        return not self.keyed and (self.presumed or self.has_copies())

    def is_still(self) -> bool:
        """Return whether nothing was seen to be added or removed."""
        return not (self.inserted or self.removed or self.head)

    def has_copies(self) -> bool:
        """Return whether a mark occurs twice."""
        return bool(len(find_copies(self.order())[0]))

    def _shared(self, known: list[tuple[int, int]], back: int) -> tuple[int, int] | None:
        """Return row and place of the first known row that another follows in order."""
        if back == 1:
            return known[0] if known else None
        for (row, place), (_row, following) in pairwise(known):
            if following > place:
                return row, place
        return None

    def _cut(self, length: int) -> None:
        del self._marks[length:]
        while len(self.pieces) > 1 and self.pieces[-1].start >= length:
            self.pieces.pop()
        last = self.pieces[-1]
        self._expected = last.page.offset + last.first + length - last.start

    def _append(self, page: MarkedPage, first: int) -> None:
        if self.pieces:
            shift = page.offset + first - self._expected
            self.inserted += max(0, shift)
            self.removed += max(0, -shift)
            self.largest_shift = max(self.largest_shift, -shift)
        self.pieces.append(Piece(page, first, len(self._marks)))
        self._marks.frombytes(page.marks[first:].tobytes())
        self.end = page.end


def _matching(
    known: list[tuple[int, int]], tail: list[int], rows: list[int]
) -> tuple[int, int] | None:
    """Return the first known row from which on page and chain agree to the chain's end."""
    for row, place in known:
        rest = tail[place:]
        if len(rest) > 1 and rows[row : row + len(rest)] == rest:
            return row, place
    return None
