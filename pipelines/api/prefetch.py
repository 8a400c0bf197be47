"""Pages asked for before the chain wants them, where latency alone leaves allowance unused.

Here: which pages are worth a guess, and letting go of those that the chain does not ask for after
all: they are nowhere recorded as read. Not here: how much is on its way (budget), the chain's own
order (chain).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import inf

from pipelines.api.page import Page
from pipelines.api.source import ALONE
from pipelines.errors import PartnerSyncError

DEPTH = 2  # guesses at a time: so many requests are wasted at the end of a list, at most

Fetch = Callable[[int], Awaitable[Page]]
Ask = Callable[[int, int], Awaitable[Page]]  # by offset and step


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
    _limit: int = 0  # rows of a page
    _asked: dict[int, asyncio.Task[Page | None]] = field(default_factory=dict)

    async def page(self, offset: int, step: int = 0) -> Page:
        """Return the page at an offset; raise what asking for it raises.

        `step` as in `Take`: where the pages are that are worth a guess.
        """
        following = [offset + step * each for each in range(1, DEPTH + 1)] if step > 0 else []
        wanted = await self._wanted(offset, following, alone=step == ALONE)
        shared = self._limit - step
        for each in following:
            if each + shared < self.end and each not in self._asked:
                self._asked[each] = asyncio.create_task(self._guess(each))
        page = await self._wait(wanted)
        if page is None:
            page = await self.fetch(offset)
        self._limit = page.limit
        return page

    async def _wanted(
        self, offset: int, following: list[int], *, alone: bool
    ) -> asyncio.Future[Page] | asyncio.Task[Page | None]:
        """Return the request for a page: the guess, if there is one, or a new one."""
        if alone:
            await self.close()  # taken back, and gone
        near = range(offset, offset + DEPTH * self._limit + 1)
        under_way = {each for each in self._asked if each in near and not following}
        self._drop(keep={offset, *following, *under_way})
        return self._asked.pop(offset, None) or asyncio.ensure_future(self.fetch(offset))

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
