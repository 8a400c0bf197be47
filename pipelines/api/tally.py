"""What the reading of one list has come to: the figures of its proof.

Not here: the verdict (chain), its words (state/proof).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from pipelines.api.stitch import Look
from pipelines.state.proof import Grade, Proof, chapman


@dataclass
class Tally:
    """Counts, one scan long; `breaks` (of order) are the chain's, `broken` those of the scan."""

    requests: int = 0
    rows: int = 0
    repairs: int = 0
    chains: int = 0
    breaks: int = 0
    broken: int = 0
    assumption: str = ""
    reason: str = ""
    flags: list[str] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)  # of the first and the last
    _samples: list[int] = field(default_factory=lambda: [0, 0])
    _both: int = 0

    def count(self, look: Look, page_of: Callable[[int], int]) -> None:
        """Count a page and its new rows.

        Rows of even and of odd pages are two samples of the list: what both hold tells its size.
        """
        own = self.requests % 2
        self.requests += 1
        self.rows += look.unseen
        answer = look.page.answer
        self.times = [
            min([answer.sent_at, *self.times]),
            max([answer.answered_at, *self.times]),
        ]
        for places in dict(zip(look.marks, look.known, strict=True)).values():
            halves = {page_of(place) % 2 for place in places}
            self._samples[own] += own not in halves
            self._both += bool(halves) and own not in halves

    def begin_chain(self) -> None:
        """Count a reading of the list from its start."""
        self.chains += 1
        self.breaks = 0

    def broke(self, times: int) -> None:
        """Count rows that stood in another order than before."""
        self.breaks += times
        self.broken += times

    def flag(self, words: str | None) -> None:
        """Keep what the service said against its own rules."""
        if words and words not in self.flags:
            self.flags.append(words)

    def proof(self, grade: Grade, key: str | None, *, inferred: bool) -> Proof:
        """Return the proof; `inferred` where the key was found by its name in this scan."""
        doubtful = grade in {Grade.UNSTABLE_ORDER, Grade.NOT_PROVEN}
        first, second = self._samples
        guess = chapman(first, second, self._both) if doubtful and self.broken else None
        return Proof(
            grade=grade,
            rows=self.rows,
            requests=self.requests,
            repairs=self.repairs,
            chains=self.chains,
            inversions=self.broken if doubtful else self.breaks,
            key=key,
            inferred=inferred,
            begun_at=self.times[0],
            ended_at=self.times[-1],
            assumption=self.assumption,
            reason=self.reason,
            flags=tuple(self.flags),
            estimate=guess,
        )
