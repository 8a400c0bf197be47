"""The requests of all passes by one key: what they showed, and how many more there may be.

Here: pages asked for and kept, and the budget. Not here: which pages are asked for (`chain.py`,
`read_list.py`).
"""

from collections import deque
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np

from pipelines.core.proof import ENDS_THERE_AGAIN, ListTraits
from pipelines.extract.key import KeySearch
from pipelines.extract.pages import (
    NextRequests,
    Numbers,
    Page,
    PageRequest,
    Purpose,
    ReadingEnded,
    Steps,
    is_distinct,
)

# Pages before the offset at which a list does not seem to end: where an earlier scan did not find
# the length, and where it did.
MOST_PAGES = 20_000
MOST_PAGES_OF_KNOWN = 2_500
# Plain passes over the longest length seen, after which a list is PARTIAL.
MOST_PASSES = 25
# Pages in a row, each further on, that may repeat the rows of the one before: as many may have come
# at the head of the list.
MOST_REPEATED = 3
# Pages further on, where a list that grows at its head shows other rows.
FURTHER = 10
# Pages with fewer rows may be alike by chance.
FEWEST_ROWS = 10
# Times the first length that the budget counts with: a list that grows without end stops, too.
MOST_GROWTH = 2


class KeyChanged(Exception):
    """Another field is the key: reading begins again with the pages that were read already."""


class LengthCheck:
    """The number of rows that a list had at one moment, and which rows were seen before and after.

    `first` is the place of its page among all pages. The rows `at_moment` count as both.
    """

    def __init__(self, length: int, first: int, before: Numbers, at_moment: Numbers) -> None:
        self.length = length
        self.first = first
        self._before = np.union1d(before, at_moment)
        self._is_after = np.isin(self._before, at_moment)

    def note(self, page: Page) -> None:
        """Note the rows of a page that was requested after the check."""
        if not len(self._before):
            return
        positions = np.searchsorted(self._before[:-1], page.elements)
        is_before = self._before[positions] == page.elements
        self._is_after[positions[is_before]] = True

    def met(self) -> int:
        """Return how many rows were seen before and after."""
        return int(np.count_nonzero(self._is_after))


@dataclass
class Pager:
    """Asks for pages and keeps what they show.

    `answers` are those to all requests, `pages` those that the passes by this key used. `passes` is
    how often the list was read to its end, `size` the number of rows on a full page.

    Where the list ends is seen at several moments: `ends_seen` are the ends that pages showed,
    `end` is where it seems to end now, `reached` the greatest offset behind a row, `first_length`
    the length at the end of the first pass, and `expected` that of the last scan.
    """

    traits: ListTraits
    keys: KeySearch
    answers: list[Page]
    pages: list[Page] = field(default_factory=list)
    checks: list[LengthCheck] = field(default_factory=list)
    ends_seen: set[int] = field(default_factory=set)
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
        self._repeated: list[Page] = []  # the newest pages, where they show the same rows

    @property
    def keyed(self) -> bool:
        """Whether rows are identified by a key."""
        return self.keys.key is not None

    def page(self, offset: int, step: int = 0, purpose: Purpose = Purpose.PAGE) -> Steps[Page]:
        """Ask for a page; `step` is how far behind it the next ones are likely to be."""
        page = self._completed((yield from self._answer(PageRequest(offset, purpose), step)))
        yield from self._require_other_rows(page)
        self.pages.append(page)
        self.size = max(self.size, len(page))
        if len(page):
            self.reached = max(self.reached, page.end)
            if page.is_last:
                self.ends_seen.add(page.end)
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

    def _answer(self, request: PageRequest, step: int) -> Steps[Page]:
        """Return the answer to a request, which may be recorded."""
        if self._recorded and self._recorded[0].request == request:
            answer = self._recorded.popleft()
        else:
            # With another key, other pages are asked for: recorded ones are of no use any more.
            self._recorded.clear()
            answer = yield from self._ask(request, step)
        return replace(answer, key=self.keys.key)

    def _require_other_rows(self, page: Page) -> Steps[None]:
        """Raise ReadingEnded if the service shows the same rows however far on it is asked.

        Some services take each offset above a cap for the cap, others every offset for 0.
        """
        offset = page.request.offset
        before = self._repeated[-1:]
        if not (before and before[0].request.offset < offset and _are_same(before[0], page)):
            self._repeated.clear()
        self._repeated.append(page)
        if len(self._repeated) <= MOST_REPEATED:
            return
        further = yield from self._answer(PageRequest(offset + FURTHER * self.size), 0)
        if _are_same(page, further):
            first = self._repeated[0].request.offset
            raise ReadingEnded(
                f"the service shows the same {len(page):,} rows at every offset from {first:,} on. "
                f"{ENDS_THERE_AGAIN}"
            )
        self._repeated.clear()

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
        return replace(page, has_more=len(page) > 0 and not self._shows_end(page))

    def _shows_end(self, page: Page) -> bool:
        """Return whether a page further on than the one before shows no row behind that."""
        if not self.pages:
            return False
        before = self.pages[-1]
        return before.request.offset < page.request.offset and page.end <= before.end

    def _ask(self, request: PageRequest, step: int) -> Steps[Page]:
        self._check_budget(request.offset)
        answer = yield NextRequests(request, self._likely_next(request.offset, step))
        self.answers.append(answer)
        if self.keys.learn(answer):
            raise KeyChanged
        return answer

    def _likely_next(self, offset: int, step: int) -> tuple[PageRequest, ...]:
        """Return the requests that are likely to follow, which may be sent ahead."""
        if step <= 0:
            return ()
        end = max(self.end, self.expected)
        following = (offset + step, offset + 2 * step)
        # Behind the end, a guess would be wasted.
        return tuple(PageRequest(guess) for guess in following if not end or guess < end)

    def _check_budget(self, offset: int) -> None:
        """Raise ReadingEnded if no more pages may be requested.

        There is always room for a second pass. In the first pass the length is not known: the
        distinct rows count, since a list may begin again behind its end. Later the growth that
        counts is limited.
        """
        known = max(self.first_length, self.expected)
        if self.first_length:
            allowed = self._allowed(min(self.reached, MOST_GROWTH * known))
        else:
            # To count the distinct rows takes time: first those that were counted last.
            allowed = self._allowed(len(self._seen))
            if len(self.answers) >= allowed:
                allowed = self._allowed(len(self.seen()))
        if len(self.answers) >= allowed:
            raise ReadingEnded(f"its rows were not counted within {allowed:,} requests")
        pages = MOST_PAGES if self.traits.length is None else MOST_PAGES_OF_KNOWN
        if offset > max(MOST_PASSES * known, pages * self.size):
            raise ReadingEnded("the list does not end")

    def _allowed(self, length: int) -> int:
        """Return how many requests a list of so many rows is worth."""
        plain_pass = ceil(max(length, self.expected) / self.size)
        return MOST_PASSES * max(1, plain_pass)


def _are_same(page: Page, other: Page) -> bool:
    """Return whether two pages show the same rows, and enough of them not to be alike by chance."""
    if len(page) != len(other) or len(page) < FEWEST_ROWS:
        return False
    marks = page.rows()["mark"]
    return is_distinct(marks) and np.array_equal(marks, other.rows()["mark"])
