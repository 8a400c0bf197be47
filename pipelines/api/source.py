"""The pages of a scan: each request is counted, and sent again if the answer is doubtful.

Not here: which page to ask for (chain, passes).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from pipelines.api import paging
from pipelines.api.page import Page
from pipelines.api.seen import SIZE, mark
from pipelines.api.stitch import Taken
from pipelines.api.tally import Tally

ALONE = -1  # a step: no other request of this list may be under way until the answer
NO_MARK = bytes(SIZE)
T = TypeVar("T")


class Take(Protocol):
    """Reads the page at an offset and numbers it.

    `step` is the distance in rows of further pages that may be requested at the same time. With 0
    no further request is sent; with ALONE no other request is under way until the answer.
    """

    def __call__(self, offset: int, step: int, /) -> Awaitable[Taken]:
        """Return the page; raise any error of the request."""


@dataclass(frozen=True)
class Shown:
    """What a page showed: its offset, its number, and the marks of its rows, joined.

    `stale` is true if the answer says that it is older than its request (header Age).
    """

    offset: int
    limit: int
    rows: int
    number: int
    stale: bool
    _marks: bytes

    @property
    def marks(self) -> list[bytes | None]:
        """The mark of each row, None for a row without a key."""
        found = [self._marks[at : at + SIZE] for at in range(0, len(self._marks), SIZE)]
        return [None if each == NO_MARK else each for each in found]


@dataclass
class Source:
    """The pages of one scan as they arrive; `limit` is the smallest page size that was used.

    `shown` keeps what each page showed while `keep` is set: 12 bytes per row. `stale` has the
    numbers of answers that are older than their requests. `cached` is true if the repeated request
    was answered by an old answer, too.
    """

    take: Take
    tally: Tally = field(default_factory=Tally)
    limit: int = 0
    shown: list[Shown] = field(default_factory=list)
    keep: bool = True
    stale: set[int] = field(default_factory=set)
    cached: bool = False

    async def read(self, offset: int, step: int, see: Callable[[Taken, Shown], T]) -> T:
        """Read the page at an offset, twice if it is doubtful; return the last result of `see`.

        `see` is called with every page, and with what it showed.
        """
        page, shown, seen = await self._once(offset, step, see)
        if paging.doubtful(page) or (shown.stale and not self.cached):
            page, shown, seen = await self._once(offset, 0, see)
            self.cached = shown.stale
        if paging.stands_still(page):
            self.tally.contradict(
                f"next_offset does not advance (offset {offset} -> {page.next_offset})"
            )
        self.tally.contradict(paging.hidden(page))
        self.tally.flag(paging.flag(page))
        return seen

    async def _once(
        self, offset: int, step: int, see: Callable[[Taken, Shown], T]
    ) -> tuple[Page, Shown, T]:
        taken = await self.take(offset, step)
        page = taken.page
        self.tally.count(page.answer)
        self.limit = min(self.limit or page.limit, max(1, page.limit))
        shown = _shown(taken)
        if shown.stale:
            self.stale.add(shown.number)
            self.tally.flag("answers older than their requests (Age above 0)")
        if self.keep:
            self.shown.append(shown)
        return page, shown, see(taken, shown)


def _shown(taken: Taken) -> Shown:
    page = taken.page
    marks = [None if key is None else mark(key) for key in taken.keys]
    age = page.answer.rate_limit.get("age", "").strip()
    stale = age not in {"", "0"}
    joined = b"".join(each or NO_MARK for each in marks)
    return Shown(page.offset, page.limit, page.rows, taken.number, stale, joined)
