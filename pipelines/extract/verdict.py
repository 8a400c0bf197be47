"""The proof of a scan: which rows count, which copies conflict, and why a list is not complete."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipelines.core.completeness import Ranges
from pipelines.extract.chain import Used
from pipelines.extract.marks import MarkedPage, Marks, Mask, Rows

_CHUNK = 200_000  # rows that are compared at a time


class Selection(NamedTuple):
    """Rows by page number: those that are loaded, and those that go to quarantine."""

    rows: int
    repeated: int
    used: dict[int, Ranges]
    conflicting: dict[int, Ranges]


@dataclass(frozen=True)
class _Table:
    """Rows as columns; `copies` is how often a row's mark occurs on its page."""

    marks: Marks
    digests: Marks
    lacking: Mask
    copies: Rows
    pages: Rows
    rows: Rows

    def take(self, chosen: Mask | Rows) -> "_Table":
        """Return some of the rows."""
        return _Table(
            self.marks[chosen],
            self.digests[chosen],
            self.lacking[chosen],
            self.copies[chosen],
            self.pages[chosen],
            self.rows[chosen],
        )


def select_rows(parts: Iterable[Used], *, keyed: bool) -> Selection:
    """Select the rows of a chain: every row once."""
    return _resolve(_concatenate([_table(part) for part in parts]), keyed=keyed)


def select_newest(pages: Iterable[MarkedPage], *, keyed: bool) -> Selection:
    """Select each row from the newest of the pages that show the most copies of it."""
    best, chunk, size = _concatenate([]), [], 0
    for page in pages:
        chunk.append(_table(Used(page, 0, len(page.marks))))
        size += len(page.marks)
        if size >= _CHUNK:
            best, chunk, size = _newest(_concatenate([best, *chunk])), [], 0
    return _resolve(_newest(_concatenate([best, *chunk])), keyed=keyed)


def _table(part: Used) -> _Table:
    page, rows = part.page, np.arange(part.first, part.end)
    _distinct, inverse, counts = np.unique(page.marks, return_inverse=True, return_counts=True)
    return _Table(
        page.marks[rows],
        page.digests[rows],
        page.lacking[rows],
        counts[inverse][rows] if len(rows) else rows,
        np.full(len(rows), page.number),
        rows,
    )


def _concatenate(tables: list[_Table]) -> _Table:
    none, zero = np.empty(0, np.uint64), np.empty(0, np.int64)
    return _Table(
        np.concatenate([none, *(table.marks for table in tables)]),
        np.concatenate([none, *(table.digests for table in tables)]),
        np.concatenate([np.empty(0, np.bool_), *(table.lacking for table in tables)]),
        np.concatenate([zero, *(table.copies for table in tables)]),
        np.concatenate([zero, *(table.pages for table in tables)]),
        np.concatenate([zero, *(table.rows for table in tables)]),
    )


def _newest(table: _Table) -> _Table:
    """Keep, for each mark, the rows of the newest page among those with the most copies."""
    ordered = table.take(np.lexsort((table.rows, -table.pages, -table.copies, table.marks)))
    if not len(ordered.marks):
        return ordered
    starts = _starts(ordered.marks)
    lengths = np.diff(np.append(starts, len(ordered.marks)))
    return ordered.take(ordered.pages == np.repeat(ordered.pages[starts], lengths))


def _resolve(table: _Table, *, keyed: bool) -> Selection:
    """Use one row for each key: the smallest digest, then the first; without keys every row."""
    lacking, table = table.take(table.lacking), table.take(~table.lacking)
    conflicting = table.take(np.empty(0, np.int64))
    used, repeated = table, 0
    if keyed and len(table.marks):
        table = table.take(np.lexsort((table.rows, table.pages, table.digests, table.marks)))
        starts = _starts(table.marks)
        lengths = np.diff(np.append(starts, len(table.marks)))
        used, repeated = table.take(starts), len(table.marks) - len(starts)
        conflicting = table.take(table.digests != np.repeat(used.digests, lengths))
    return Selection(
        len(used.marks), repeated, _ranges(used), _ranges(_concatenate([conflicting, lacking]))
    )


def _starts(marks: Marks) -> Rows:
    return np.flatnonzero(np.concatenate(([True], marks[1:] != marks[:-1])))


def _ranges(table: _Table) -> dict[int, Ranges]:
    """Return rows by page as ranges."""
    order = np.lexsort((table.rows, table.pages))
    pages, rows = table.pages[order], table.rows[order]
    if not len(rows):
        return {}
    breaks = (pages[1:] != pages[:-1]) | (rows[1:] != rows[:-1] + 1)
    firsts = np.flatnonzero(np.concatenate(([True], breaks)))
    lasts = np.append(firsts[1:], len(rows)) - 1
    found: dict[int, list[tuple[int, int]]] = {}
    for page, first, last in zip(
        pages[firsts].tolist(), rows[firsts].tolist(), rows[lasts].tolist(), strict=True
    ):
        found.setdefault(page, []).append((first, last + 1))
    return {page: tuple(ranges) for page, ranges in found.items()}
