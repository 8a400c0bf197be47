"""Reading a list whose order changes: passes of plain pages, until its rows are counted.

Odd passes begin at offset 0; even passes read offset 0 and continue from half a page. So a row
whose place changes by less than half a page during two passes is on a page of one of them. Each
pass ends with a length check. The same answers lead to the same requests. Not here: what is counted
(count), reading by anchored pages (chain).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from math import ceil
from random import Random

from pipelines.api import paging
from pipelines.api.count import Check, Count
from pipelines.api.page import Page
from pipelines.api.source import ALONE, Shown, Source
from pipelines.api.stitch import Taken

PASSES = 25  # the budget, in plain passes of the longest length seen
AT_LEAST = 2  # passes to the end before a list is graded PARTIAL
IN_A_ROW = 3  # pages with has_more and nothing new; passes without a new row
TRIES = 3  # attempts to find the end of a list that grows meanwhile
AHEAD = 3  # maximum requests sent before the next page is read
LOOKS = 5  # random pages to read when passes show no new row


class End(Enum):
    """Why the passes ended."""

    COUNTED = "counted"
    BUDGET = "budget"
    TIME = "time"
    CONTRADICTION = "contradiction"
    NOTHING_NEW = "nothing new"
    NO_LENGTH = "no length"


class _EndedError(Exception):
    """The passes are over; carries the End."""


@dataclass(frozen=True)
class _Seen:
    """One page of a pass; `fresh` counts its new keys, `alone` means a step of ALONE (`Take`)."""

    page: Page
    shown: Shown
    alone: bool
    fresh: int

    @property
    def end(self) -> int:
        """The offset behind its rows."""
        return self.page.offset + self.page.rows

    @property
    def checks(self) -> bool:
        """Whether it shows the length of the list: requested alone, not empty, not full."""
        some = 0 < self.page.rows < self.page.limit or self.end == 0
        return self.alone and some


@dataclass
class Passes:
    """Counts the rows of one list.

    `begun` is the offset at which the first pass starts, if earlier pages showed the rows before
    it. `expected` is how many rows the list had last time, 0 if unknown. `late` returns whether
    the time limit is reached.
    """

    source: Source
    keyed: bool
    begun: int = 0
    expected: int = 0
    late: Callable[[], bool] = lambda: False
    passes: int = 0
    counted: Check | None = None
    count: Count = field(init=False)
    lengths: list[int] = field(default_factory=list)  # one for each length check
    _longest: int = 0
    _distinct: int = 0  # keys at the end of the last pass
    _still: int = 0  # consecutive passes without a new key
    _looked: int = 0  # before this offset no page is requested again

    def __post_init__(self) -> None:
        """Add the pages that were read before."""
        self.count = Count(self.keyed)
        self._longest = self.expected
        for shown in self.source.shown:
            self.count.see(shown)
        self.source.shown.clear()
        self.source.keep = False

    async def read(self) -> End:
        """Read passes until the rows are counted, or until more passes would not help."""
        try:
            while True:
                await self._pass()
                self.passes += 1
                self._stop_at_contradiction()
                self._stop_without_length()
                await self._stop_growing()
        except _EndedError as ended:
            reason: End = ended.args[0]
            return reason

    async def _pass(self) -> None:
        """Read the list once, to its end."""
        offset = self.begun
        if self.passes:
            offset = 0
        if self.passes % 2:
            await self._page(0)
            offset = self.source.limit // 2
        idle = 0
        while True:
            seen = await self._page(offset, self._step(offset))
            idle = 0 if seen.fresh else idle + 1
            if await self._endless(seen, idle):
                return
            if not seen.page.has_more or (seen.page.rows == 0 and idle == IN_A_ROW):
                following = await self._end(seen)
                if following is None:
                    return
                seen = following
            offset = seen.end if seen.page.rows else offset + seen.page.limit

    def _step(self, offset: int) -> int:
        """Return the distance to the next page if two more can be prefetched without waste, else 0.

        The last page is requested alone, so that it can be the length check.
        """
        limit, length = self.source.limit, self._length
        if length and offset + limit >= length:
            return ALONE
        return limit if offset + 3 * limit < length else 0

    @property
    def _length(self) -> int:
        return self.lengths[-1] if self.lengths else self.expected

    async def _endless(self, seen: _Seen, idle: int) -> bool:
        """Whether pages continue behind the known end of the list."""
        known = max(self.count.distinct, self._longest)
        limit, begin = self.source.limit, seen.page.offset
        if not seen.page.has_more:
            return False
        behind = idle >= IN_A_ROW and begin >= known + IN_A_ROW * limit
        if behind or paging.endless(begin, self.expected, limit):
            self.source.tally.contradict(
                f"has_more is true at offset {begin:,}, and pages do not end"
            )
            return True
        if begin < max(self._looked, PASSES * limit, PASSES * self.expected):
            return False
        self._looked = 2 * begin
        again = await self._page(begin)
        others = 2 * again.fresh > again.page.rows
        if others:
            self.source.tally.contradict(
                f"the page at offset {begin:,} shows other rows each time it is requested"
            )
        return others

    async def _end(self, seen: _Seen) -> _Seen | None:
        """Check the length at what seems the last page; return the next page if it is not the last.

        If the list grows and its end is not found, the next pass checks again.
        """
        if seen.page.has_more:
            self.source.tally.contradict(
                f"has_more is true at offset {seen.page.offset:,}, and nothing more comes"
            )
        if seen.page.rows >= seen.page.limit:
            seen = await self._page(seen.end, ALONE)
            if seen.page.rows:
                return seen
        for _try in range(TRIES):
            if await self._checked(seen):
                break
        return None

    async def _checked(self, seen: _Seen) -> bool:
        """Check the length with the last page or, if it is empty, with one half a page before it.

        If the length changed since the last check, the first page is read again before: otherwise
        a row that was added there since this pass began would be unseen on the side before.
        """
        empty = seen.end if seen.page.rows == 0 else -1
        if empty > 0:
            seen = await self._page(max(0, empty - max(1, self.source.limit // 2)), ALONE)
        elif not seen.alone:
            seen = await self._page(seen.page.offset, ALONE)
        if seen.checks and self.lengths and self.lengths[-1] != seen.end:
            await self._page(0)
            seen, empty = await self._page(seen.page.offset, ALONE), -1
        if not seen.checks or seen.shown.stale:
            return False
        if seen.end not in {0, empty}:
            behind = await self._page(seen.end, ALONE)
            if behind.page.rows or behind.shown.stale:
                return False
        self.lengths.append(seen.end)
        self._longest = max(self._longest, seen.end)
        self.count.check(seen.shown, seen.end, seen.page.answer.answered_at)
        self._stop_when_counted()
        return True

    async def _page(self, offset: int, step: int = 0) -> _Seen:
        """Read a page; raise _EndedError if the list is counted, or out of budget or time."""
        if self.passes >= AT_LEAST:
            left = self.budget - self.source.tally.requests - AHEAD  # some may go unused
            if left <= 0:
                raise _EndedError(End.BUDGET)
            if self.late():
                raise _EndedError(End.TIME)
            if left <= AHEAD:
                step = min(step, 0)
        before = self.count.distinct
        page, shown = await self.source.read(offset, step, self._saw)
        self.source.tally.rows = self.count.distinct
        seen = _Seen(page, shown, step == ALONE, self.count.distinct - before)
        if not page.has_more:  # an empty page may be far behind the end
            end = seen.end if page.rows else min(seen.end, self.count.distinct)
            self._longest = max(self._longest, end)
        self._stop_when_counted()
        return seen

    def _saw(self, taken: Taken, shown: Shown) -> tuple[Page, Shown]:
        self.count.see(shown)
        return taken.page, shown

    @property
    def still(self) -> bool:
        """Whether passes show no new row any more, so that more passes would find none."""
        return self._still >= IN_A_ROW

    @property
    def budget(self) -> int:
        """How many requests the scan may take."""
        return PASSES * max(1, ceil(self._longest / max(1, self.source.limit)))

    def _stop_when_counted(self) -> None:
        """Stop if all rows that a check counted were seen on both sides of it."""
        if self.source.tally.contradiction:
            return
        for check in self.count.checks:
            met = self.count.met(check)
            if met == check.rows:
                self.counted = check
                raise _EndedError(End.COUNTED)
            if met > check.rows:
                self.source.tally.contradict(
                    f"{met:,} rows were seen before and after the list had {check.rows:,}"
                )
                return

    def _stop_at_contradiction(self) -> None:
        if self.source.tally.contradiction and self.passes >= AT_LEAST:
            raise _EndedError(End.CONTRADICTION)

    def _stop_without_length(self) -> None:
        """Stop if no pass could check the length, for example with pages of one row."""
        if not self.lengths and self.passes > IN_A_ROW:
            raise _EndedError(End.NO_LENGTH)

    async def _stop_growing(self) -> None:
        """Stop if neither passes nor random pages show a new row or a new repeat."""
        grown = self.count.distinct > self._distinct
        self._still = 0 if grown else self._still + 1
        self._distinct, repeats = self.count.distinct, self.count.repeats
        if not self.still or self._distinct + repeats >= self._length:
            return
        chance = Random(self.source.tally.requests)  # noqa: S311 the same answers, the same pages
        for _look in range(LOOKS):
            await self._page(chance.randrange(max(1, self._length - self.source.limit + 1)))
        if (self.count.distinct, self.count.repeats) == (self._distinct, repeats):
            raise _EndedError(End.NOTHING_NEW)
