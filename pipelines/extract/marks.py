"""Marks: 64-bit numbers that stand for rows, so that pages are compared as plain set arithmetic."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.extract.pages import Page, RowRef

Marks = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_BITS = 2**64 - 1
_COPY = np.uint64(0x9E3779B97F4A7C15)  # odd, so that the copies of a mark have marks of their own
_NO_KEY = np.uint64(0xD1B54A32D192ED03)  # keeps rows without a key apart from keys


@dataclass(frozen=True)
class StoredPage:
    """An answer as numbers: the digest of each row, and its values of the candidate fields.

    `values` has a row for each candidate field; 0 stands for null or missing.
    """

    page: Page
    digests: Marks
    values: Marks


@dataclass(frozen=True)
class MarkedPage:
    """An answer whose rows are identified; `lacking` are the rows without a key."""

    number: int
    offset: int
    limit: int
    has_more: bool
    sent: int
    received: int
    marks: Marks
    digests: Marks
    lacking: Mask

    @property
    def end(self) -> int:
        """The offset behind its rows."""
        return self.offset + len(self.marks)

    @property
    def is_short(self) -> bool:
        """Whether it has fewer rows than the service says it may have."""
        return len(self.marks) < self.limit


def store_page(page: Page) -> StoredPage:
    """Return a page without its texts: the proof refers to its rows by their place."""
    digests = np.array([int.from_bytes(row.digest) for row in page.rows], np.uint64)
    values = np.zeros((len(page.fields), len(page.rows)), np.uint64)
    for field in range(len(page.fields)):
        values[field] = [_number(row, field) for row in page.rows]
    empty = Page(
        page.number,
        page.request,
        (),
        page.fields,
        page.limit,
        page.has_more,
        page.next_offset,
        page.sent,
        page.received,
    )
    return StoredPage(empty, digests, values)


def _number(row: RowRef, field: int) -> int:
    text = row.candidates[field]
    return 0 if text is None else (hash(text) & _BITS) or 1


def mark_page(stored: StoredPage, key: str | None) -> MarkedPage:
    """Identify the rows of a page by a key; None: by their whole content."""
    page, rows = stored.page, len(stored.digests)
    lacking = np.zeros(rows, np.bool_)
    marks = stored.digests
    if key is not None:
        values = np.zeros(rows, np.uint64)
        if key in page.fields:
            values = stored.values[page.fields.index(key)]
        lacking = values == 0
        marks = np.where(lacking, stored.digests ^ _NO_KEY, values)
    return MarkedPage(
        page.number,
        page.request.offset,
        page.limit,
        page.has_more,
        page.sent,
        page.received,
        marks,
        stored.digests,
        lacking,
    )


def number_copies(marks: Marks) -> Marks:
    """Return marks in which the i-th copy of a mark, counted from 0, has a mark of its own."""
    order = np.argsort(marks, kind="stable")
    ordered = marks[order]
    equal = ordered[1:] == ordered[:-1]
    if not equal.any():
        return marks
    starts = np.flatnonzero(np.concatenate(([True], ~equal)))
    lengths = np.diff(np.append(starts, len(marks)))
    ordinals = np.arange(len(marks)) - np.repeat(starts, lengths)
    numbered = marks.copy()
    numbered[order] = ordered + ordinals.astype(np.uint64) * _COPY
    return numbered


def find_copies(marks: Marks) -> tuple[Marks, Rows]:
    """Return the marks that occur more than once, ascending, and how often each occurs."""
    distinct, counts = np.unique(marks, return_counts=True)
    return distinct[counts > 1], counts[counts > 1]


def is_ascending(places: Sequence[int] | Rows) -> bool:
    """Return whether each place is behind the one before it."""
    return bool(np.all(np.diff(np.asarray(places, np.int64)) > 0))


def join_marks(parts: Iterable[Marks]) -> Marks:
    """Return several columns as one."""
    return np.concatenate([np.empty(0, np.uint64), *parts])


class Index:
    """Finds the places of marks in a sequence."""

    def __init__(self, marks: Marks) -> None:
        self._order = np.argsort(marks, kind="stable")
        self._sorted = marks[self._order]

    def find(self, wanted: Marks) -> Rows:
        """Return the first place of each mark, -1 for those that do not occur."""
        if not len(self._sorted):
            return np.full(len(wanted), -1, np.int64)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        return np.where(self._sorted[at] == wanted, self._order[at], -1)
