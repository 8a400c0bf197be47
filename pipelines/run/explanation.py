"""What explains a figure: its records as published and as sent, and the figure once more.

Here: the values, and whether they are the same. Not here: where they come from (explaining).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from pipelines.run.raw import Raw


@dataclass(frozen=True)
class Line:
    """A record behind a figure: its numbers as published, and as they were sent.

    `expected` is quantity times price, as both were sent.
    """

    side: str
    id: str
    amount: Decimal | None
    quantity: Decimal | None
    raw: Raw
    sent_amount: Decimal | None
    sent_quantity: Decimal | None
    expected: Decimal | None = None

    @property
    def trouble(self) -> str:
        """Why it is not what it was said to be; empty where it is."""
        if self.raw.trouble:
            return self.raw.trouble
        if self.sent_amount != self.amount:
            return "another amount was sent"
        return "" if self.sent_quantity == self.quantity else "another quantity was sent"


@dataclass(frozen=True)
class Figure:
    """A published figure, and the same added up from the archive alone."""

    name: str
    published: Decimal | None
    again: Decimal | None

    @property
    def equal(self) -> bool:
        """Whether the archive says the same."""
        return self.published == self.again


@dataclass(frozen=True)
class Explanation:
    """What a figure is about, in words; its records; and what they come to."""

    title: str
    words: tuple[str, ...]
    lines: tuple[Line, ...]
    figures: tuple[Figure, ...]

    @property
    def equal(self) -> bool:
        """Whether every page is what was read, and every figure the same again."""
        return all(each.equal for each in self.figures) and not self.troubles

    @property
    def troubles(self) -> list[str]:
        """Say which records are not what they were said to be."""
        return [f"{each.side} {each.id}: {each.trouble}" for each in self.lines if each.trouble]

    @property
    def pages(self) -> list[Raw]:
        """A record of each archived page that was opened."""
        return list({each.raw.digest: each.raw for each in self.lines}.values())

    @property
    def redactions(self) -> list[str]:
        """Say from which of the pages records were erased, by whom and why."""
        said = {each.raw.digest: each.raw.redacted for each in self.lines if each.raw.redacted}
        return [f"page {digest[:12]}: {words}" for digest, words in said.items()]


def added(numbers: Iterable[Decimal | None]) -> Decimal | None:
    """Add up what there is, every digit; None where there is nothing."""
    known = [each for each in numbers if each is not None]
    return sum(known, Decimal(0)) if known else None
