"""What it means that the service refuses an offset: the end of the list, or a cap below its end.

Some services refuse every offset above a number of their own. Rows behind it cannot be read, so the
list is PARTIAL. Others answer an offset behind the last row with 404, where the interface document
has an empty page.

Here: which of the two it is, and how the lowest refused offset is found. Not here: the requests for
that (`scan.py`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pipelines.core.proof import ENDS_THERE_AGAIN
from pipelines.core.text import Redactor, printable
from pipelines.extract.pages import Page
from pipelines.http.retry import Attempt, read_problem

# Statuses that are about the request.
REFUSED = frozenset({400, 404, 413, 414, 416, 422})
# Some services fail instead of refusing.
FAILED = range(500, 600)
# Characters of the service's own words in a reason.
LONGEST_QUOTE = 200

Probe = Callable[[int], Awaitable[Attempt | None]]
"""Requests an offset once; returns the attempt if it was refused or failed, None if answered."""


@dataclass
class KnownOffsets:
    """What the pages of a list say about its offsets.

    `answered` is the highest offset with an answer, `last` the highest one at which the newest
    answers show or promise a row; -1: none. `page_rows` is the size of the largest page.
    """

    answered: int = -1
    last: int = -1
    page_rows: int = 1

    def note(self, page: Page) -> None:
        """Note what a page shows."""
        self.answered = max(self.answered, page.request.offset)
        self.page_rows = max(self.page_rows, len(page))
        if page.has_more:
            self.last = max(self.last, page.end)
        elif page.end > self.last or page.request.offset <= self.last:
            self.last = page.end - 1

    def is_end(self, offset: int, failed: Attempt) -> bool:
        """Return whether a refusal only says that the list has no row at this offset."""
        return 0 < self.last < offset and failed.status in REFUSED

    def may_be_cap(self, offset: int, failed: Attempt) -> bool:
        """Return whether an offset was refused that no answer reached, before the known end."""
        return is_refusal(failed) and 0 <= self.answered < offset <= self.last


def is_refusal(failed: Attempt) -> bool:
    """Return whether an attempt may have failed because of its offset."""
    return failed.status in REFUSED or failed.status in FAILED


async def find_cap(known: KnownOffsets, offset: int, probe: Probe) -> int | None:
    """Return the lowest offset that is refused; None where the service refuses not only offsets.

    It does not answer an offset further on, but still the ones that it answered before.
    """
    # An offset that was answered before is still answered: the service is up.
    if await probe(known.answered) is not None:
        return None
    # Those further on are refused, also where a page would begin if pages did not overlap: some
    # services take no other offsets. So is this one, again: it was no failure by chance.
    further = offset + known.page_rows
    for place in {further, further - further % known.page_rows}:
        if await probe(place) is None:
            return None
    if await probe(offset) is None:
        return None
    answered = known.answered
    refused = offset
    while refused - answered > 1:
        middle = (answered + refused) // 2
        if await probe(middle) is None:
            answered = middle
        else:
            refused = middle
    return refused


def describe_cap(cap: int, failed: Attempt, redactor: Redactor) -> str:
    """Return why the list could not be read to its end, for the proof."""
    problem = read_problem(failed.body)
    words = redactor.clean(str(problem.get("detail") or problem.get("title") or "")).strip()
    quote = f': "{printable(words, LONGEST_QUOTE)}"' if words else ""
    return (
        f"the service refuses every offset from {cap:,} on (status {failed.status}{quote}), "
        f"although it says that more rows follow. {ENDS_THERE_AGAIN}"
    )
