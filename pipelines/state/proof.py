"""The proof of completeness: what one reading of a list is worth, under which assumption.

The page chain finds it; the manifest and the ledger keep it. Not here: how it is found (api/chain),
what becomes of missing rows (the warehouse's).
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import sqrt
from typing import Any

import msgspec


class Grade(StrEnum):
    """What was proven of a list, the strongest first."""

    SNAPSHOT = "SNAPSHOT"
    COMPLETE = "COMPLETE"
    COMPLETE_FOR_UNMOVED = "COMPLETE_FOR_UNMOVED"
    UNSTABLE_ORDER = "UNSTABLE_ORDER"
    NOT_PROVEN = "NOT_PROVEN"

    @property
    def folded(self) -> bool:
        """Whether the rows become the tables; only then is there a manifest."""
        return self is not Grade.NOT_PROVEN

    @property
    def counts_missing(self) -> bool:
        """Whether a row that is not here counts as missing."""
        return self in {Grade.SNAPSHOT, Grade.COMPLETE}

    @property
    def marked(self) -> bool:
        """Whether what is published of the stream says that it is doubtful."""
        return self in {Grade.UNSTABLE_ORDER, Grade.NOT_PROVEN}

    @property
    def exit_code(self) -> int:
        """The exit code of a verb whose worst stream has this grade, others being published."""
        return 3 if self.marked else 0

    @property
    def words(self) -> str:
        """The grade as people read it."""
        return self.replace("_", " ")


@dataclass(frozen=True)
class Estimate:
    """How many rows there probably are, where not all were read: from, to."""

    low: int
    high: int


@dataclass(frozen=True)
class Proof:
    """One list, read once: the verdict and what it stands on.

    `rows` are distinct, `requests` all that the scan took; `key` is the field that tells rows
    apart, None where the whole record does. `assumption` is what nobody but the service can rule
    out; `reason` why nothing is proven; `flags` what the service said against its own rules.
    """

    grade: Grade
    rows: int
    requests: int
    repairs: int
    chains: int
    inversions: int
    key: str | None
    inferred: bool
    begun_at: datetime
    ended_at: datetime
    assumption: str = ""
    reason: str = ""
    flags: tuple[str, ...] = ()
    estimate: Estimate | None = None

    def sentence(self, stream: str) -> str:
        """Say in words what was proven of a stream."""
        words = f"{stream}: {self.grade.words} — {self._verdict()}"
        if self.inferred and self.key:
            words += f" Rows are told apart by {self.key}, found by its name."
        if self.rows and self.key is None:
            words += (
                " Rows are told apart by all their fields: none was found that is a "
                f"key; where you know one, set streams.{stream}.key."
            )
            if self.requests > 1:
                words += " One that changed meanwhile may be here twice, as two rows."
        if self.flags:
            words += f" Seen on the way: {'; '.join(self.flags)}."
        return words

    def _verdict(self) -> str:
        begun, ended = f"{self.begun_at:%H:%M:%S}", f"{self.ended_at:%H:%M:%S}"
        cost = f"({_many(self.rows, 'row')}, {_many(self.requests, 'request')}"
        cost += f", {_many(self.repairs, 'repair')})" if self.repairs else ")"
        seconds = round((self.ended_at - self.begun_at).total_seconds())
        span = f"in those {seconds} s" if seconds else "meanwhile"
        others = f"Rows added or removed {span} may or may not be."
        existed = f"all rows that existed from {begun} to {ended}"
        match self.grade:
            case Grade.SNAPSHOT:
                return f"the list as it was at {ended}, in one page {cost}."
            case Grade.COMPLETE:
                known = f", {self.assumption}," if self.chains > 1 and self.assumption else ""
                return f"{existed} are here{known} {cost}. {others}"
            case Grade.COMPLETE_FOR_UNMOVED:
                moved = f"{_many(self.inversions, 'change')} of order seen"
                return f"{existed} and kept their place are here {cost}; {moved}. {others}"
            case Grade.UNSTABLE_ORDER:
                return (
                    f"order changed in each of {self.chains} readings; {self._about()}"
                    f"{self.rows:,} read; they were folded, nothing counts as missing."
                )
            case _:
                return (
                    f"{self.reason}; {self._about()}{self.rows:,} read in "
                    f"{_many(self.requests, 'request')}; they are archived and not folded, the "
                    "last published rows stay."
                )

    def _about(self) -> str:
        if self.estimate is None:
            return ""
        return f"about {self.estimate.low:,}–{self.estimate.high:,} rows exist, "  # noqa: RUF001 a range


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def chapman(first: int, second: int, both: int) -> Estimate | None:
    """Estimate a list's size (95 %) from two readings of parts of it, in distinct rows.

    Capture and recapture after Chapman; None where the two have nothing in common.
    """
    if not both:
        return None
    size = (first + 1) * (second + 1) / (both + 1) - 1
    spread = (first + 1) * (second + 1) * (first - both) * (second - both)
    error = 1.96 * sqrt(spread / ((both + 1) ** 2 * (both + 2)))
    seen = first + second - both
    return Estimate(max(seen, round(size - error)), max(seen, round(size + error)))


def to_json(proof: Proof) -> Any:
    """Return a proof as JSON values, times in ISO 8601."""
    return msgspec.to_builtins(proof)


def from_json(values: Any) -> Proof:
    """Return a proof from what `to_json` gave."""
    return msgspec.convert(values, Proof)
