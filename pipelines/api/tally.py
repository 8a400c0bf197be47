"""What the reading of one list has come to: the figures of its proof.

Not here: the verdict (reader), its words (state/proof).
"""

from dataclasses import dataclass, field
from datetime import datetime

from pipelines.api.page import Answer


@dataclass
class Tally:
    """Counts, one scan long.

    `broken` counts rows that stood in another order than before, on `broken_pages` pages.
    `contradiction` is what the service said against itself so that no list can be proven whole.
    """

    requests: int = 0
    rows: int = 0
    repairs: int = 0
    chains: int = 0
    broken: int = 0
    broken_pages: int = 0
    assumption: str = ""
    contradiction: str = ""
    flags: list[str] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)  # of the first and the last

    def count(self, answer: Answer) -> None:
        """Count a request."""
        self.requests += 1
        self.times = [
            min([answer.sent_at, *self.times]),
            max([answer.answered_at, *self.times]),
        ]

    def broke(self, rows: int) -> None:
        """Count the rows of a page that stood in another order than before."""
        self.broken += rows
        self.broken_pages += rows > 0

    def flag(self, words: str | None) -> None:
        """Keep what the service said against its own rules."""
        if words and words not in self.flags:
            self.flags.append(words)

    def contradict(self, words: str) -> None:
        """Keep the first thing that the service said after which nothing proves the list whole."""
        self.contradiction = self.contradiction or words
