"""The proof of a scan: which rows count, which copies conflict, and why a list is not complete."""

from collections.abc import Sequence

import numpy as np

from pipelines.core.completeness import ListMemory, Method, Ranges
from pipelines.extract.pages import ROW, Page, Proof, Rows

_CHUNK = 400  # pages that are compared at a time


def prove(
    rows: Rows, method: Method, memory: ListMemory, reason: str = "", *, keyed: bool
) -> Proof:
    """Return the proof that rests on these rows; with a reason, it is not complete.

    One row counts for each key: the smallest digest, then the first. Without keys every row does.
    """
    lacking, rows = rows[rows["lacking"]], rows[~rows["lacking"]]
    used, conflicting = rows, rows[:0]
    if keyed:
        rows = rows[np.lexsort((rows["row"], rows["page"], rows["digest"], rows["mark"]))]
        _marks, first, at = np.unique(rows["mark"], return_index=True, return_inverse=True)
        used = rows[first]
        conflicting = rows[rows["digest"] != used["digest"][at]]
    return Proof(
        complete=not reason,
        method=method,
        rows=len(used),
        repeated=len(rows) - len(used),
        not_seen=None,
        reason=reason,
        used=_ranges(used),
        conflicting=_ranges(np.concatenate([conflicting, lacking])),
        memory=memory,
    )


def newest_rows(pages: Sequence[Page]) -> Rows:
    """Return each row as the newest of the pages shows it that have the most copies of it."""
    best = np.empty(0, ROW)
    for first in range(0, len(pages), _CHUNK):
        rows = np.concatenate([best, *(page.rows() for page in pages[first : first + _CHUNK])])
        rows = rows[np.lexsort((-rows["page"], -rows["copies"]))]
        _marks, newest, at = np.unique(rows["mark"], return_index=True, return_inverse=True)
        best = rows[rows["page"] == rows["page"][newest][at]]
    return best


def _ranges(rows: Rows) -> dict[int, Ranges]:
    """Return rows by page as ranges."""
    rows = rows[np.lexsort((rows["row"], rows["page"]))]
    ends = np.flatnonzero((np.diff(rows["page"]) != 0) | (np.diff(rows["row"]) != 1)) + 1
    found: dict[int, Ranges] = {}
    for part in np.split(rows, ends) if len(rows) else ():
        page, first = int(part["page"][0]), int(part["row"][0])
        found[page] = (*found.get(page, ()), (first, first + len(part)))
    return found
