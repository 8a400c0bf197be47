"""Here: which copies of rows are loaded: the newest of counted and PARTIAL lists, one for each key.

Where pages overlap, the newer page replaces the older in `Chain.join`. Not here: whether these rows
are all that the list has (read_list).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipelines.core.proof import Ranges
from pipelines.extract.pages import ROW, Page, RowArray, is_distinct

# Pages whose rows are compared at a time, so that the rows of all pages are never in memory.
PAGES_AT_ONCE = 400


class SelectedRows(NamedTuple):
    """Rows that are loaded, and those that go to quarantine; `repeated` counts other copies."""

    used: RowArray
    conflicting: RowArray
    repeated: int


def newest_rows(pages: Sequence[Page]) -> RowArray:
    """Return the copies of each mark from one page: of those with the most copies, the newest."""
    best = np.empty(0, ROW)
    for first in range(0, len(pages), PAGES_AT_ONCE):
        group = pages[first : first + PAGES_AT_ONCE]
        rows = np.concatenate([best, *(page.rows() for page in group)])
        rows = rows[np.lexsort((-rows["page"], -rows["copies"]))]
        _marks, firsts, inverse = np.unique(rows["mark"], return_index=True, return_inverse=True)
        best_pages = rows["page"][firsts][inverse]
        best = rows[rows["page"] == best_pages]
    return best


def select_copies(rows: RowArray, *, keyed: bool) -> SelectedRows:
    """Select one row for each key: the one with the smallest digest, then the first.

    Rows with the same key and another digest are in conflict. So are rows without a key, in a list
    that has one.
    """
    has_key = ~rows["lacks_key"]
    lacking = rows[rows["lacks_key"]]
    rows = rows[has_key]
    if not keyed or is_distinct(rows["mark"]):
        return SelectedRows(rows, lacking, repeated=0)
    order = np.lexsort((rows["row"], rows["page"], rows["digest"], rows["mark"]))
    marks = rows["mark"][order]
    digests = rows["digest"][order]
    # The first mark differs from its own complement, so it is the first of its kind, too.
    is_first = np.diff(marks, prepend=~marks[:1]) != 0
    digests_of_used = digests[is_first][np.cumsum(is_first) - 1]
    used = rows[order[is_first]]
    conflicting = rows[order[digests != digests_of_used]]
    return SelectedRows(used, np.concatenate([conflicting, lacking]), len(rows) - len(used))


def to_ranges(rows: RowArray) -> dict[int, Ranges]:
    """Return rows by page as ranges."""
    if not len(rows):
        return {}
    rows = rows[np.lexsort((rows["row"], rows["page"]))]
    is_new_page = np.diff(rows["page"]) != 0
    is_apart = np.diff(rows["row"]) != 1
    ends = np.flatnonzero(is_new_page | is_apart) + 1
    ranges: dict[int, Ranges] = {}
    for part in np.split(rows, ends):
        page = int(part["page"][0])
        first = int(part["row"][0])
        ranges[page] = (*ranges.get(page, ()), (first, first + len(part)))
    return ranges
