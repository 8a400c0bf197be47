"""The proof by count: which rows were seen on both sides of a length check.

A length check is an answer that shows the end of the list while no other request is under way: the
list has n rows at that moment. A row that was seen in an answer received before it was sent, and
again in an answer to a request sent after it, was there at that moment, unless it was removed and
added again under its key. So n such rows are exactly the list at that moment, in whatever order the
service shows it and whatever was added and removed before and after.

A repeated row counts as often as both sides show its key on one page: the smaller of the two
numbers. Copies that no page shows together are never counted twice, since a row that moved there
and back looks the same. Not here: which pages are read (passes).
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from pipelines.api.source import Shown

NEVER = 1 << 62  # as the number of an answer: there was none


@dataclass
class Check:
    """A length check: the list had `rows` rows at the time of the answer with this number.

    `page` counts the keys on the page of the check. `met` counts the keys seen on both sides,
    including those of `page`. Until `due` rows were read in total, `met` cannot reach `rows`.
    """

    number: int
    rows: int
    at: datetime
    page: Counter[bytes]
    met: int
    due: int = 0


@dataclass
class Count:
    """Every key that was seen, with the numbers of the first and the last answer that showed it.

    Numbers ascend in the order in which the pages were requested. `unmarked` is true if a row
    without a key was seen. Takes about 180 bytes per key.
    """

    keyed: bool
    checks: list[Check] = field(default_factory=list)
    _index: dict[bytes, int] = field(default_factory=dict)
    _first: list[int] = field(default_factory=list)
    _last: list[int] = field(default_factory=list)
    _several: dict[bytes, list[tuple[int, int]]] = field(default_factory=dict)
    _rows: int = 0  # rows read, repeats included
    _slack: int = 0  # further copies of a key that one page showed together
    unmarked: bool = False

    @property
    def distinct(self) -> int:
        """How many keys were seen."""
        return len(self._index)

    @property
    def repeats(self) -> int:
        """How many further copies of keys pages showed together, at any time."""
        return self._slack

    def see(self, shown: Shown) -> None:
        """Record the rows of a page; a stale page is no evidence that they are in the list."""
        marks = shown.marks
        self._rows += len(marks)
        times = Counter(each for each in marks if each)
        self.unmarked = self.unmarked or None in marks
        for each, often in times.items():
            at = self._index.setdefault(each, len(self._first))
            if at == len(self._first):
                self._first.append(NEVER)
                self._last.append(-1)
            if shown.stale:
                continue
            self._see(at, shown.number)
            if often > 1:
                several = self._several.setdefault(each, [])
                self._slack += max(0, often - max((most for _at, most in several), default=1))
                several.append((shown.number, often))

    def check(self, shown: Shown, rows: int, at: datetime) -> Check:
        """Add a length check: the page seen last shows the end of a list of `rows` rows."""
        page = Counter(each for each in shown.marks if each)
        check = Check(shown.number, rows, at, page, len(page))
        self.checks.append(check)
        return check

    def met(self, check: Check) -> int:
        """Return how many rows were seen on both sides of a check; a lower bound if too few."""
        if self._rows < check.due or check.met + self._slack < check.rows:
            return check.met
        met = check.met + sum(
            self._copies(key, check) - 1 for key in self._several if self._both(key, check)
        )
        check.due = self._rows + check.rows - met  # each row read adds at most one
        return met

    def since(self, first: int) -> int:
        """Return how many rows are loaded from the pages since a number; 0 means all pages.

        That is one row for each key; without a key, as many equal rows as one page showed.
        """
        keys = sum(last >= first for last in self._last) if first else self.distinct
        if self.keyed:
            return keys
        return keys + sum(
            max((often for number, often in shown if number >= first), default=1) - 1
            for shown in self._several.values()
        )

    def _see(self, at: int, number: int) -> None:
        first, last = self._first[at], self._last[at]
        for check in reversed(self.checks):
            if check.number <= last:
                break
            if first < check.number < number:
                check.met += 1
        self._first[at], self._last[at] = min(first, number), max(last, number)

    def _both(self, key: bytes, check: Check) -> bool:
        """Whether a key was seen on both sides of a length check, or on its page."""
        at = self._index[key]
        return key in check.page or self._first[at] < check.number < self._last[at]

    def _copies(self, key: bytes, check: Check) -> int:
        """Return how many rows with a key a list had at a length check."""
        several = self._several[key]
        before = max((often for number, often in several if number < check.number), default=1)
        after = max((often for number, often in several if number > check.number), default=1)
        return max(min(before, after), check.page[key], 1)
