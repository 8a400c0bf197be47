"""The requests of one reading: what they showed, and how many more there may be."""

from collections import deque
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np

from pipelines.core.completeness import ListTraits
from pipelines.extract.key import KeySearch
from pipelines.extract.pages import Ask, Numbers, Page, PageRequest, Purpose, ReadingEnded, Steps

ENDLESS_PAGES = 20_000  # of a list whose length is not known
KNOWN_PAGES = 2_500  # of a list whose length is known
MAX_PASSES = 25  # plain ones, of the longest length seen, after which a list is PARTIAL
GROWTH = 2  # times the first length that the budget counts with


class KeyChanged(Exception):
    """Another field is the key: reading begins again with the pages that were read already."""


class LengthCheck:
    """The number of rows that a list had at one moment, and which rows were seen before and after.

    `first` is the place of its page among all pages. The rows `at` that moment count as both.
    """

    def __init__(self, length: int, first: int, before: Numbers, at: Numbers) -> None:
        self.length = length
        self.first = first
        self._before = np.union1d(before, at)
        self._after = np.isin(self._before, at)

    def note(self, page: Page) -> None:
        """Note the rows of a page that was requested after the check."""
        if len(self._before):
            places = np.searchsorted(self._before[:-1], page.elements)
            self._after[places[self._before[places] == page.elements]] = True

    def met(self) -> int:
        """Return how many rows were seen before and after."""
        return int(np.count_nonzero(self._after))


@dataclass
class Pager:
    """Asks for pages and keeps what they show.

    `answers` are those to all requests, `pages` those that this reading used, `ends` the ends of
    the list that they showed. `passes` is how often the list was read to its end, `size` the number
    of rows on a full page, `end` the offset where the list seems to end, `reached` the greatest one
    behind a row, `first_length` the length that the list had at the end of the first pass.
    """

    traits: ListTraits
    keys: KeySearch
    answers: list[Page]
    pages: list[Page] = field(default_factory=list)
    checks: list[LengthCheck] = field(default_factory=list)
    ends: set[int] = field(default_factory=set)
    passes: int = 0
    size: int = 1
    end: int = 0
    reached: int = 0
    first_length: int = 0

    def __post_init__(self) -> None:
        self.expected = self.traits.length or 0
        self._recorded = deque(self.answers)
        self._seen = np.empty(0, np.uint64)
        self._seen_pages = 0

    @property
    def keyed(self) -> bool:
        """Whether rows are identified by a key."""
        return self.keys.key is not None

    def page(self, offset: int, step: int = 0, purpose: Purpose = Purpose.PAGE) -> Steps[Page]:
        """Ask for a page; `step` is how far behind it the next ones are likely to be."""
        request = PageRequest(offset, purpose)
        if self._recorded and self._recorded[0].request == request:
            answer = self._recorded.popleft()
        else:
            self._recorded.clear()  # pages of before are of no use any more
            answer = yield from self._ask(request, step)
        page = self._completed(replace(answer, key=self.keys.key))
        self.pages.append(page)
        self.size = max(self.size, len(page))
        self.reached = max(self.reached, page.end if len(page) else 0)
        if len(page) and page.is_last:
            self.ends.add(page.end)
        for check in self.checks:
            check.note(page)
        return page

    def end_pass(self, end: int, length: int) -> None:
        """Note where the list ended and how many rows it had."""
        self.end = end
        self.first_length = self.first_length or length
        self.passes += 1

    def seen(self) -> Numbers:
        """Return all elements that were seen, each once, ascending."""
        new = [page.elements for page in self.pages[self._seen_pages :]]
        self._seen = np.unique(np.concatenate([self._seen, *new]))
        self._seen_pages = len(self.pages)
        return self._seen

    def require_fresh(self) -> None:
        """Raise ReadingEnded if a cache answered: only a single chain proves something then.

        Pages of a cache may repeat what was seen before, so agreeing with it says nothing.
        """
        if any(page.is_cached for page in self.pages):
            raise ReadingEnded("a cache answered, so reading again proves nothing")

    def _completed(self, page: Page) -> Page:
        """Return a page with what its answer does not say.

        There is more behind rows, unless a request further on has shown that there is none.
        """
        # Some services state the number of rows as the limit of their last page.
        is_count = page.limit == len(page) < self.size and not page.has_more
        if is_count:
            page = replace(page, limit=self.size)
        if page.says_more and not is_count:
            return page
        before = self.pages[-1] if self.pages else None
        is_further = before is not None and before.request.offset < page.request.offset
        is_end = before is not None and is_further and page.end <= before.end
        return replace(page, has_more=len(page) > 0 and not is_end)

    def _ask(self, request: PageRequest, step: int) -> Steps[Page]:
        self._check_budget(request.offset)
        following = (request.offset + step, request.offset + 2 * step) if step > 0 else ()
        end = max(self.end, self.expected)  # behind it, a guess would be wasted
        likely = (PageRequest(at) for at in following if not end or at < end)
        answer = yield Ask(request, tuple(likely))
        self.answers.append(answer)
        if self.keys.learn(answer):
            raise KeyChanged
        return answer

    def _check_budget(self, offset: int) -> None:
        """Raise ReadingEnded if no more pages may be requested.

        There is always room for a second pass. In the first pass the length is not known: the
        distinct rows count, since a list may begin again behind its end. Later the growth that
        counts is limited, so that reading a list that grows without end stops too.
        """
        known = max(self.first_length, self.expected)
        length = min(self.reached, GROWTH * known) if self.first_length else len(self._seen)
        allowed = self._allowed(length)
        if len(self.answers) >= allowed and not self.first_length:
            allowed = self._allowed(len(self.seen()))
        if len(self.answers) >= allowed:
            raise ReadingEnded(f"its rows were not counted within {allowed:,} requests")
        pages = ENDLESS_PAGES if self.traits.length is None else KNOWN_PAGES
        if offset > max(MAX_PASSES * known, pages * self.size):
            raise ReadingEnded("the list does not end")

    def _allowed(self, length: int) -> int:
        """Return how many requests a list of so many rows is worth."""
        plain = ceil(max(length, self.expected) / self.size)
        return MAX_PASSES * max(1, plain)
