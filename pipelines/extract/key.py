"""Which field identifies the rows of a list: decided over the whole first scan."""

from dataclasses import dataclass, field

import numpy as np

from pipelines.core.completeness import ListMemory
from pipelines.extract.pages import Numbers, Page, Purpose

LACKING = 0.01  # share of rows in which a key may be null or missing
CONFLICTING = 0.02  # share of its values that rows with other content may have too
APART = 5  # times as many, if these rows are on several pages
SHARED = 0.5  # a key has at least so many values a row
_OTHER_PAGE = np.uint64(0x9E3779B97F4A7C15)


@dataclass
class KeySearch:
    """Decides the key of a list, page by page."""

    configured: str | None
    memory: ListMemory
    key: str | None = None
    _fields: tuple[str, ...] = ()
    _pages: list[Numbers] = field(default_factory=list)  # rows that no earlier page reached
    _reached: int = 0
    _due: int = 1  # when so many pages are known, the key is decided again

    def __post_init__(self) -> None:
        self.key = self.memory.key

    def learn(self, page: Page) -> bool:
        """Note what a page shows; return whether from now on another field is the key."""
        first = max(0, self._reached - page.request.offset)
        if first < len(page):
            self._reached = page.end
            self._fields = page.fields
            self._pages.append(page.values[first:])
        is_due = page.request.purpose is Purpose.HEAD or len(self._pages) >= self._due
        return is_due and self.change()

    def change(self) -> bool:
        """Use another field if the one in use is not the best; return whether it changed."""
        if self.memory.key_decided or not self._pages:
            return False
        self._due = 2 * len(self._pages)
        conflicts = {name: self._conflicts(name) for name in self._fields}
        keys = [name for name in self._fields if conflicts[name] is not None]
        keys.sort(key=lambda name: bool(conflicts[name]) and name != self.configured)
        before, self.key = self.key, keys[0] if keys else None
        return self.key != before

    def _conflicts(self, name: str) -> int | None:
        """Return how many values have rows of other content; None if the field is no key."""
        column = 1 + self._fields.index(name)
        digests, values = np.concatenate([page[:, [0, column]] for page in self._pages]).T
        pages = np.repeat(np.arange(len(self._pages)), [len(page) for page in self._pages])
        present = values != 0
        digests, values, pages = digests[present], values[present], pages[present]
        distinct, conflicts = len(np.unique(values)), _conflicting(values, digests)
        is_named = name in {self.configured, "id"} or name.endswith(("Id", "_id"))
        if np.count_nonzero(~present) > is_named * LACKING * len(present):
            return None
        # On several pages, a row may also have changed and moved while the list was read.
        together = _conflicting(values + pages.astype(np.uint64) * _OTHER_PAGE, digests)
        most = is_named * CONFLICTING * distinct
        if together > most or conflicts > APART * most or distinct < SHARED * len(values):
            return None
        return conflicts


def _conflicting(values: Numbers, digests: Numbers) -> int:
    """Return how many values belong to rows of different content."""
    order = np.lexsort((digests, values))
    values, digests = values[order], digests[order]
    different = (values[1:] == values[:-1]) & (digests[1:] != digests[:-1])
    return len(np.unique(values[1:][different]))
