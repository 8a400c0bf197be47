"""Which field identifies the rows of a list: decided over the whole first scan."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pipelines.core.completeness import ListMemory
from pipelines.extract.marks import Marks, StoredPage

LACKING = 0.01  # share of rows in which a key may be null or missing
CONFLICTING = 0.02  # share of its values that rows with other content may have too
SHARED = 0.5  # a key has at least so many values a row
CLEARLY = 5  # times as much as may be: no need to read on


@dataclass
class KeySearch:
    """Decides the key of a list, page by page.

    `key` is the field in use. A field is tried once only.
    """

    configured: str | None
    memory: ListMemory
    key: str | None = None
    _fields: tuple[str, ...] = ()
    _pages: list[StoredPage] = field(default_factory=list)  # rows that no earlier page reached
    _reached: int = 0
    _tried: set[str | None] = field(default_factory=set)
    _rows: int = 0
    _lacking: int = 0  # rows without a value of the field in use
    _conflicting: int = 0  # its values that one page shows with different content

    def learn(self, stored: StoredPage) -> None:
        """Note what a page shows of the candidates, if it shows more of the list."""
        first = not self._pages
        page, rows = stored.page, len(stored.digests)
        begin = max(0, self._reached - page.request.offset)
        if self.memory.key_decided or begin >= rows:
            if first:
                self.key = self.memory.key
            return
        self._reached = page.request.offset + rows
        self._pages.append(StoredPage(page, stored.digests[begin:], stored.values[:, begin:]))
        if first:
            self._fields = page.fields
            self.key = self._best()
            self._tried.add(self.key)
        self._rows += rows - begin
        if self.key is not None:
            self._suspect(self.key)

    def is_refuted(self) -> bool:
        """Return whether the field in use is so clearly no key that reading on is of no use."""
        if self.key is None or self.memory.key_decided:
            return False
        return (
            self._lacking > CLEARLY * LACKING * self._rows
            or self._conflicting > CLEARLY * CONFLICTING * self._rows
        )

    def change(self) -> bool:
        """Use another field if the one in use is not the best; return whether it changed."""
        if self.memory.key_decided or not self._pages:
            return False
        best = self._best()
        if best in self._tried:
            return False
        self.key = best
        self._tried.add(best)
        self._lacking = self._conflicting = 0
        return True

    def _best(self) -> str | None:
        """Return the likeliest field that can be the key, if possible one without conflicts."""
        found: list[tuple[bool, int, str]] = []
        for place, name in enumerate(self._fields):
            conflicts = self._conflicts(name)
            if conflicts is not None:
                found.append((conflicts > 0 and name != self.configured, place, name))
        return min(found)[2] if found else None

    def _conflicts(self, name: str) -> int | None:
        """Return how many values have rows of other content; None if the field is no key."""
        together = sum(_conflicting(self._values(page, name), page.digests) for page in self._pages)
        values = np.concatenate([self._values(page, name) for page in self._pages])
        digests = np.concatenate([page.digests for page in self._pages])
        present = values != 0
        values, digests = values[present], digests[present]
        conflicts, distinct = _conflicting(values, digests), len(np.unique(values))
        certain = self._is_named(name)
        lacking = len(present) - len(values)
        if lacking > (LACKING if certain else 0) * len(present):
            return None
        # On several pages, a row may also have changed and moved while the list was read.
        most = CONFLICTING * distinct if certain else 0
        if together > most or conflicts > CLEARLY * most:
            return None
        return None if distinct < SHARED * len(values) else conflicts

    def _suspect(self, name: str) -> None:
        page = self._pages[-1]
        values = self._values(page, name)
        self._lacking += int(np.count_nonzero(values == 0))
        self._conflicting += _conflicting(values, page.digests)

    def _values(self, page: StoredPage, name: str) -> Marks:
        values: Marks = page.values[self._fields.index(name)]
        return values

    def _is_named(self, name: str) -> bool:
        """Return whether a name says that the field is an identifier."""
        return name in {self.configured, "id"} or name.endswith(("Id", "_id"))


def _conflicting(values: Marks, digests: Marks) -> int:
    """Return how many values other than 0 belong to rows of different content."""
    values, digests = values[values != 0], digests[values != 0]
    ordered = np.sort(values)
    if not (ordered[1:] == ordered[:-1]).any():
        return 0
    order = np.lexsort((digests, values))
    values, digests = values[order], digests[order]
    different = (values[1:] == values[:-1]) & (digests[1:] != digests[:-1])
    return len(np.unique(values[1:][different]))


def candidate_fields(configured: str | None, stream: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the fields that may be the key of a stream, the likeliest first."""
    singular = stream.removesuffix("s")
    likely = [configured, "id", f"{stream}Id", f"{singular}Id", f"{singular}_id", *names]
    return tuple(dict.fromkeys(name for name in likely if name is not None))
