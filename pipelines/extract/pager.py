"""The requests of one reading: what they showed, and how many more there may be."""

from collections.abc import Generator
from dataclasses import dataclass, field
from math import ceil

from pipelines.core.completeness import ListMemory, ReadBudget
from pipelines.extract.count import Sightings
from pipelines.extract.marks import MarkedPage
from pipelines.extract.pages import Ask, PageRequest, Purpose, Stop

PageSteps = Generator[Ask, MarkedPage | Stop, MarkedPage]

ENDLESS_PAGES = 20_000  # of a list whose length is not known
KNOWN_PAGES = 2_500  # of a list whose length is known
GROWTH = 2  # times the first length that the budget counts with


class ReadingEnded(Exception):
    """No more pages are requested: the budget is used up, or the driver stopped."""


@dataclass
class Pager:
    """Asks for pages and keeps what they show.

    `spent` counts requests, `passes` how often the list was read to its end, `size` is the number
    of rows on a full page, `end` the offset where the list seems to end, `longest` the greatest
    length that it was seen to have, `reached` the rows that the first passes have read.
    """

    memory: ListMemory
    budget: ReadBudget
    keyed: bool = True
    spent: int = 0
    passes: int = 0
    size: int = 0
    end: int = 0
    longest: int = 0
    reached: int = 0
    first_length: int = 0
    pages: list[MarkedPage] = field(default_factory=list)
    sightings: Sightings = field(default_factory=Sightings)

    @property
    def expected(self) -> int:
        """The number of rows that the list had at the last scan."""
        return self.memory.length or 0

    def page(self, offset: int, step: int = 0, purpose: Purpose = Purpose.PAGE) -> PageSteps:
        """Ask for a page; `step` is how far behind it the next ones are likely to be."""
        self._check_budget(offset)
        limit = self.budget.page_size
        following = (offset + step, offset + 2 * step) if step > 0 else ()
        known = max(self.end, self.expected)  # behind it, a guess would be wasted
        likely = tuple(PageRequest(each, limit) for each in following if not known or each < known)
        page = yield Ask(PageRequest(offset, limit, purpose), likely)
        if isinstance(page, Stop):
            raise ReadingEnded(page.reason)
        self.spent += 1
        self.size = max(self.size, len(page.marks))
        self.pages.append(page)
        self.sightings.add(page)
        return page

    def end_at(self, end: int, length: int) -> None:
        """Note where the list ended and how many rows it had."""
        self.end = end
        self.first_length = self.first_length or length
        self.longest = max(self.longest, length)

    def _check_budget(self, offset: int) -> None:
        """Raise ReadingEnded if no more pages may be requested.

        Every list is read to its end twice. The first passes have no known length to go by, and
        a list that grows for ever must not raise its own budget for ever.
        """
        size, known = max(1, self.size), max(self.first_length, self.expected)
        length = min(self.longest, GROWTH * known) if self.first_length else self.reached
        allowed = self.budget.max_passes * max(1, ceil(max(length, self.expected) / size))
        if self.spent >= allowed:
            raise ReadingEnded(f"its rows were not counted within {allowed:,} requests")
        pages = ENDLESS_PAGES if self.memory.length is None else KNOWN_PAGES
        if offset > max(self.budget.max_passes * known, pages * size):
            raise ReadingEnded("the list does not end")
