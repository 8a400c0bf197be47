"""The values that `read_list` exchanges with its driver: requests, pages, a proof at the end.

Here: what one page shows, as numbers, and arithmetic over the rows of pages. Not here: how an
answer becomes a page (`key.py`), and which pages are requested (`pager.py`).
"""

from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

# A scan file of another version cannot be resumed: `read_list` might ask for other pages.
ALGORITHM_VERSION = 12

Numbers = npt.NDArray[np.uint64]
Booleans = npt.NDArray[np.bool_]
# A mark stands for the row's key, or for its content. `offset` is the row's place in the list,
# `row` that on its page. `copies` is how often its mark is on its page.
ROW = np.dtype(
    [
        ("mark", "u8"),
        ("digest", "u8"),
        ("offset", "i8"),
        ("page", "i4"),
        ("row", "i4"),
        ("copies", "i4"),
        ("lacks_key", "?"),
    ]
)
RowArray = npt.NDArray[Any]
"""Rows, each of type ROW. Lists have a million rows: an object for each would take gigabytes."""
# Odd, so that the copies of a mark have marks of their own.
_COPY = np.uint64(0x9E3779B97F4A7C15)
# Keeps rows without a key apart from keys.
_NO_KEY = np.uint64(0xD1B54A32D192ED03)


class Purpose(StrEnum):
    """Why a page is requested. LENGTH and BEHIND are sent while no other request is in flight."""

    PAGE = "page"
    HEAD = "head"
    LENGTH = "length"
    BEHIND = "behind"


ALONE = frozenset({Purpose.LENGTH, Purpose.BEHIND})


class PageRequest(NamedTuple):
    """One request for a page."""

    offset: int
    purpose: Purpose = Purpose.PAGE


class NextRequests(NamedTuple):
    """The request that must be answered next, and those that are likely to follow it."""

    request: PageRequest
    likely_next: tuple[PageRequest, ...]


class ReadingEnded(Exception):
    """No more pages are requested. The driver throws it when its time is up."""


@dataclass(frozen=True)
class Page:
    """One answer, as numbers; its rows are identified by the field `key`, None: by their content.

    `number` is the number of its exchange in the scan file, `limit` the page size that the service
    says it used, else the one requested. `says_more`: it says `has_more`. `is_cached`: a cache
    answered, with the page as it was some seconds before. `total` is how many rows the service
    counts on all pages; None where it does not say. `denial` is the member by which the service
    says that the page lacks rows; empty without one. `values` has one line a row: the first 8 bytes
    of the SHA-256 of the raw record, then for each of `fields` (the key candidates) a number that
    stands for its value; 0 where the value is null or missing.
    """

    number: int
    request: PageRequest
    fields: tuple[str, ...]
    values: Numbers
    limit: int
    has_more: bool
    key: str | None = None
    says_more: bool = True
    is_cached: bool = False
    total: int | None = None
    denial: str = ""

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.values)

    @property
    def end(self) -> int:
        """The offset behind its rows."""
        return self.request.offset + len(self)

    @property
    def is_short(self) -> bool:
        """Whether it has fewer rows than the service says it may have."""
        return len(self) < self.limit

    @property
    def is_last(self) -> bool:
        """Whether it shows the end of the list."""
        return self.is_short and not self.has_more

    @property
    def lacks_rows(self) -> bool:
        """Whether it shows the end of the list before all rows that the service counts."""
        return self.is_last and self.total is not None and self.total > self.end

    @cached_property
    def elements(self) -> Numbers:
        """The marks of its rows, in which the copies of a row have marks of their own."""
        return number_copies(self.rows()["mark"])

    def rows(self) -> RowArray:
        """Return its rows."""
        digests = self.values[:, 0]
        rows = np.zeros(len(self), ROW)
        rows["digest"] = digests
        rows["mark"] = digests
        if self.key is not None:
            keys = np.zeros(len(self), np.uint64)
            if self.key in self.fields:
                keys = self.values[:, 1 + self.fields.index(self.key)]
            rows["lacks_key"] = keys == 0
            rows["mark"] = np.where(keys == 0, digests ^ _NO_KEY, keys)
        rows["page"] = self.number
        rows["row"] = np.arange(len(self))
        rows["offset"] = self.request.offset + rows["row"]
        _marks, inverse, counts = np.unique(rows["mark"], return_inverse=True, return_counts=True)
        rows["copies"] = counts[inverse]
        return rows


def is_distinct(marks: Numbers) -> bool:
    """Return whether no mark occurs twice."""
    ordered = np.sort(marks)
    return not (ordered[1:] == ordered[:-1]).any()


def is_in(marks: Numbers, others: Numbers) -> Booleans:
    """Return which marks are among others."""
    # As `np.isin`, which sorts both together: a second more for a million rows.
    if not len(others):
        return np.zeros(len(marks), np.bool_)
    ordered = np.sort(others)
    # Without the last one, no position is behind the end.
    positions = np.searchsorted(ordered[:-1], marks)
    is_among: Booleans = ordered[positions] == marks
    return is_among


def number_copies(marks: Numbers) -> Numbers:
    """Return marks in which the i-th copy of a mark, counted from 0, has a mark of its own."""
    # A copy: the marks may be a view of rows, which would stay in memory.
    if is_distinct(marks):
        return marks.copy()
    order = np.argsort(marks, kind="stable")
    ordered = marks[order]
    ordinals = np.arange(len(marks)) - np.searchsorted(ordered, ordered)
    numbered = marks.copy()
    numbered[order] = ordered + ordinals.astype(np.uint64) * _COPY
    return numbered


Result = TypeVar("Result")
Steps = Generator[NextRequests, Page, Result]
"""Yields requests, receives the page of each, returns a result. There is no I/O in between."""
