"""Pages asked for before the chain wants them, where latency alone leaves allowance unused.

Here: which pages are worth a guess, and letting go of those that the chain does not ask for after
all: they are nowhere recorded as read. Not here: how much is on its way (budget), the chain's own
order (chain).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import inf

from pipelines.api import paging
from pipelines.api.page import Page
from pipelines.errors import PartnerSyncError

DEPTH = 2  # guesses at a time: so many requests are wasted at the end of a list, at most

Fetch = Callable[[int], Awaitable[Page]]


@dataclass
class Race:
    """The lists that are read side by side, and how many pages each has left, as far as known."""

    left: dict[str, float] = field(default_factory=dict)

    def longest(self, stream: str) -> bool:
        """Whether a list is the one that will be read last."""
        return stream == max(self.left, key=self.left.__getitem__, default=None)


@dataclass
class Prefetch:
    """Reads pages of one list; asks for the next ones too while `ahead` says that it is time.

    Nothing is guessed that a list of `end` rows has no more: it had as many last time.
    """

    fetch: Fetch
    ahead: Callable[[], bool]
    end: float = inf
    _stride: int = 0
    _shared: int = 0  # rows with the page before
    _asked: dict[int, asyncio.Task[Page | None]] = field(default_factory=dict)

    async def page(self, offset: int) -> Page:
        """Return the page at an offset; raise what asking for it raises."""
        following = [offset + self._stride * step for step in range(1, DEPTH + 1)]
        self._drop(keep={offset, *following})
        guessed = self._asked.pop(offset, None)
        wanted = guessed or asyncio.ensure_future(self.fetch(offset))
        if self._stride:
            for each in following:
                if each + self._shared < self.end and each not in self._asked:
                    self._asked[each] = asyncio.create_task(self._guess(each))
        page = await self._wait(wanted)
        if page is None:
            page = await self.fetch(offset)
        self._shared = paging.overlap(page.limit)
        self._stride = max(0, page.limit - self._shared) if page.has_more else 0
        return page

    async def close(self) -> None:
        """Let go of everything that was asked for and is not wanted."""
        dropped = list(self._asked.values())
        self._drop(keep=set())
        await asyncio.gather(*dropped, return_exceptions=True)

    async def _guess(self, offset: int) -> Page | None:
        """Ask for a page if it is time; a failure is no news, it is asked for again if wanted."""
        if not self.ahead():
            self._asked.pop(offset, None)  # it may be time when the next page is wanted
            return None
        try:
            return await self.fetch(offset)
        except PartnerSyncError:
            return None

    @staticmethod
    async def _wait(wanted: asyncio.Future[Page] | asyncio.Task[Page | None]) -> Page | None:
        """Wait for a page; whoever gives up waiting takes the request back."""
        try:
            return await wanted
        finally:
            wanted.cancel()

    def _drop(self, keep: set[int]) -> None:
        for offset in self._asked.keys() - keep:
            self._asked.pop(offset).cancel()
