"""The proof of completeness: what was proven of one scan of a list, and under which assumption.

Not here: how it is found (api/chain, api/count), how missing rows are handled (the warehouse's).
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec


class Grade(StrEnum):
    """What was proven of a list, the strongest first.

    Releases before 0.2 used the last three. New scans never have them, but manifests and tables
    that have them stay readable.
    """

    SNAPSHOT = "SNAPSHOT"
    COMPLETE = "COMPLETE"
    COMPLETE_BY_COUNT = "COMPLETE_BY_COUNT"
    PARTIAL = "PARTIAL"
    COMPLETE_FOR_UNMOVED = "COMPLETE_FOR_UNMOVED"
    UNSTABLE_ORDER = "UNSTABLE_ORDER"
    NOT_PROVEN = "NOT_PROVEN"

    @property
    def folded(self) -> bool:
        """Whether the rows are loaded; only then is there a manifest."""
        return self is not Grade.NOT_PROVEN

    @property
    def counts_missing(self) -> bool:
        """Whether a row that is not here counts as missing."""
        return self in {Grade.SNAPSHOT, Grade.COMPLETE, Grade.COMPLETE_BY_COUNT}

    @property
    def marked(self) -> bool:
        """Whether the published stream is marked, because rows may be lacking."""
        return self in {Grade.PARTIAL, Grade.UNSTABLE_ORDER, Grade.NOT_PROVEN}

    @property
    def exit_code(self) -> int:
        """The exit code of a verb whose worst stream has this grade, others being published."""
        return 3 if self.marked else 0

    @property
    def words(self) -> str:
        """The grade as people read it."""
        return self.replace("_", " ")


@dataclass(frozen=True)
class Proof:
    """One list, read once: the grade and the figures behind it.

    `rows` counts the distinct rows read (COMPLETE BY COUNT: those of them that are loaded),
    `requests` all requests of the scan, `inversions` the rows that a page showed in another order
    than before. `key` is the field that identifies a record, None if the whole record does;
    `inferred` is true if it was detected in this scan. `repeats` counts further copies of rows
    under the same key. `places` is the length of the list at `counted_at` (length check), None if
    it was not counted. `not_seen` is how many of these rows were never read, None if unknown.
    `order_moves`: order broke on more than one page in ten, so the next scan starts with the
    count; `anchored_skipped` counts consecutive scans that did so. `assumption` is what the grade
    assumes, `reason` why the list is not proven complete, `flags` how the service contradicted
    its own rules.
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
    repeats: int = 0
    places: int | None = None
    counted_at: datetime | None = None
    not_seen: int | None = None
    order_moves: bool = False
    anchored_skipped: int = 0

    def sentence(self, stream: str) -> str:
        """Say in words what was proven of a stream."""
        return " ".join(
            part
            for part in (
                f"{stream}: {self.grade.words}.",
                self._verdict(),
                self._repeats(),
                self._key(stream),
                f"The service contradicted itself: {'; '.join(self.flags)}." if self.flags else "",
            )
            if part
        )

    def _verdict(self) -> str:
        cost = f"{_many(self.rows, 'row')}, {_many(self.requests, 'request')}"
        cost += f", {_many(self.repairs, 'repair')}." if self.repairs else "."
        match self.grade:
            case Grade.SNAPSHOT:
                return f"{cost} The list as it was at {self.ended_at:%H:%M:%S} UTC, in one page."
            case Grade.COMPLETE:
                known = f" Assumption: {self.assumption}." if self._conditional else ""
                return f"{cost} Contains every row that existed throughout {self._span}.{known}"
            case Grade.COMPLETE_BY_COUNT:
                return (
                    f"{cost} The order of the list changes, so its rows were counted: contains "
                    f"exactly the {_many(self._distinct, 'row')} that the list had at "
                    f"{self._counted}, and rows added until {self.ended_at:%H:%M:%S} UTC."
                )
            case Grade.PARTIAL:
                return (
                    f"{self._seen()} {_many(self.requests, 'request')}. {self._why}The rows are "
                    "loaded; rows that are not among them do not count as missing."
                )
            case _:
                return f"{cost} {self._legacy()}"

    def _legacy(self) -> str:
        """Explain a grade of a release before 0.2."""
        lacking = "Rows may be lacking; none counts as missing."
        if self.grade is Grade.COMPLETE_FOR_UNMOVED:
            return f"Contains every row that kept its position throughout {self._span}. {lacking}"
        if self.grade is Grade.UNSTABLE_ORDER:
            return f"The order changed in each of {self.chains} readings. {lacking}"
        return f"{self._why}The rows are not loaded; the last published rows stay."

    @property
    def _why(self) -> str:
        return f"{self.reason[:1].upper()}{self.reason[1:]}. " if self.reason else ""

    @property
    def _span(self) -> str:
        return f"{self.begun_at:%H:%M:%S}–{self.ended_at:%H:%M:%S} UTC"  # noqa: RUF001 a range

    @property
    def _conditional(self) -> bool:
        """Whether COMPLETE has a further assumption, because the list was read more than once."""
        return self.chains > 1 and bool(self.assumption)

    @property
    def _distinct(self) -> int:
        """How many records the list had at the length check, each repeated row counted once."""
        return (self.places or 0) - self.repeats

    @property
    def _counted(self) -> str:
        return f"{self.counted_at:%H:%M:%S} UTC" if self.counted_at else "the end"

    def _seen(self) -> str:
        seen = f"{_many(self.rows, 'distinct row')} seen"
        if self.places is None:
            return f"{seen}; how many rows the list has is not known."
        missing = f" ({self.not_seen:,} not seen)" if self.not_seen else ""
        if self.rows > self.places:
            missing = " (rows were removed meanwhile, or their keys change)"
        return f"{seen}; the list had {_many(self.places, 'place')} at {self._counted}{missing}."

    def _repeats(self) -> str:
        if not self.repeats:
            return ""
        return f"{_many(self.repeats, 'row')} repeated under the same key; each key is loaded once."

    def _key(self, stream: str) -> str:
        if self.key is not None:
            return f"Primary key: {self.key} (detected)." if self.inferred else ""
        if not self.rows:
            return ""
        return (
            "No primary key found: a record is identified by all its fields, so a record that "
            "changed while it was read may be there twice. If you know the key, set "
            f"streams.{stream}.key."
        )


@dataclass(frozen=True)
class Counting:
    """How far the count of one list is; `places` is its length, None before the first check.

    `passes` counts the passes that were started.
    """

    seen: int
    places: int | None
    passes: int

    @property
    def words(self) -> str:
        """The text for a progress line."""
        places = f" of {self.places:,} places" if self.places is not None else " rows"
        return f"counting, {self.seen:,}{places} seen, pass {self.passes}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def to_json(proof: Proof) -> Any:
    """Return a proof as JSON values, times in ISO 8601."""
    return msgspec.to_builtins(proof)


def from_json(values: Any) -> Proof:
    """Return a proof from what `to_json` gave."""
    return msgspec.convert(values, Proof)
