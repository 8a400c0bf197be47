"""Here: what is proven about one scan of a list, and what the next scan of it should know.

Not here: how it is proven (extract.read_list).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from pipelines.core.key import key_fields
from pipelines.core.text import counted

# One reading may pass a row that moves to pages that were read. Where a row that was read was
# removed, too, 23 to 90 % of such readings were COMPLETE without it.
AGREEING = 2  # readings that see a row that changes its place
# In the reason of a list whose rows behind an offset are not shown.
ENDS_THERE_AGAIN = "Another sync ends there, too"
Ranges = tuple[tuple[int, int], ...]
"""Rows of one page as half-open ranges (first, end), ascending."""


class Method(StrEnum):
    """How a list was read, and so what its proof rests on."""

    ONE_PAGE = "one_page"
    OVERLAPPING_PAGES = "overlapping_pages"
    COUNTED = "counted"


def rests_on_one_reading(method: str | None, chains: int | None) -> bool:
    """Return whether a proof holds only if no row changed its place while the list was read.

    `chains` None: an older partner-sync did not record how many readings agree.
    """
    return method == Method.OVERLAPPING_PAGES and (chains or 0) < AGREEING


class ListTraits(msgspec.Struct, frozen=True):
    """What one scan of a list leaves for the next one.

    Rows are identified by `key`, None: by their whole content; without `key_decided` the next scan
    may find a better one. `length` is the number of rows at the end of the scan. `stable_order`
    turns False, and stays so, when the order of the list was seen to move. `passes` is how many
    readings were asked to agree.
    """

    key: str | None = None
    key_decided: bool = False
    length: int | None = None
    stable_order: bool = True
    passes: int = 1


class Proof(msgspec.Struct, frozen=True):
    """What the answers of one scan prove.

    `used` and `conflicting` name rows by page number (the number of the exchange in the scan file):
    the rows that are loaded, and those that go to quarantine because another copy of their key with
    other content is used, or they have no key. `rows` counts the used ones, `repeated` the copies
    that were set aside. `not_seen` is the number of rows the list had beyond those seen; None where
    it is not known. `reason` says why a scan is not complete. `chains` is how many readings by
    overlapping pages agree; 0: the proof is a count or one page; None: an older version of
    partner-sync did not record it. One reading proves a list only if no row changed its place.
    """

    complete: bool
    method: Method
    rows: int
    repeated: int
    not_seen: int | None
    reason: str
    used: dict[int, Ranges]
    conflicting: dict[int, Ranges]
    # Scan files have it by this name since the first release.
    traits: ListTraits = msgspec.field(name="memory")
    chains: int | None = None


class Completeness(Proof, frozen=True, kw_only=True):
    """The proof that seals a scan. `erased` counts the rows that were erased since.

    `cached_seconds` is how long a cache had kept the oldest answer: rows are shown as they were so
    long before. Times are those of this machine's clock. If it disagrees with the service's clock,
    `service_started_at` and `service_ended_at` are the times of the first and last answer by that.
    """

    requests: int
    started_at: datetime
    ended_at: datetime
    erased: int = 0
    cached_seconds: int = 0
    service_started_at: datetime | None = None
    service_ended_at: datetime | None = None

    def span(self) -> tuple[datetime, datetime]:
        """Return when the list was read: by the clock that is behind, if the two disagree.

        So no row is said to be newer than it may be, and no month is due too early.
        """
        # Nobody knows which clock is right.
        ended = min(self.ended_at, self.service_ended_at or self.ended_at)
        started = min(self.started_at, self.service_started_at or self.started_at)
        return min(started, ended), ended

    def without(self, erased: Mapping[int, Collection[int]]) -> "Completeness":
        """Return the proof of the same scan after rows were erased, by page."""
        used = _without(self.used, erased)
        return msgspec.structs.replace(
            self,
            used=used,
            conflicting=_without(self.conflicting, erased),
            rows=_count(used),
            erased=self.erased + sum(map(len, erased.values())),
        )

    def sentence(self, stream: str) -> str:
        """Return what is proven of the list, for people."""
        size = self._size()
        if not self.complete:
            if self.not_seen is not None:
                size += f" {self.not_seen:,} rows were not seen."
            return f"{stream}: PARTIAL. {size} Reason: {self.reason}. No row is deleted."
        if self.method is Method.ONE_PAGE:
            proof = f"One page held the whole list at {self._when()}."
        else:
            proof = f"Contains every row that existed throughout {self._when()}{self._basis()}."
        if self.traits.key:
            key = f"Primary key: {', '.join(key_fields(self.traits.key))}."
        else:
            key = "No primary key: rows are compared by content."
        return f"{stream}: COMPLETE. {size} {proof} {key}"

    def _size(self) -> str:
        """Return how much was read, and what is not among it or is old."""
        sentences = [f"{counted(self.rows, 'row')}, {counted(self.requests, 'request')}."]
        in_quarantine = _count(self.conflicting)
        if in_quarantine:
            sentences.append(f"{in_quarantine:,} more records are in quarantine.")
        if self.erased:
            sentences.append(f"{self.erased:,} records were erased later.")
        if self.cached_seconds:
            sentences.append(f"A cache answered with pages up to {self.cached_seconds} s old.")
        return " ".join(sentences)

    def _when(self) -> str:
        """Return when the list was read, by both clocks if they disagree."""
        cached = timedelta(seconds=self.cached_seconds)
        ours = self._shown(self.started_at - cached, self.ended_at)
        if self.service_started_at is None or self.service_ended_at is None:
            return f"{_span('%H:%M:%S', ours)} UTC"
        theirs = self._shown(self.service_started_at - cached, self.service_ended_at)
        form = "%Y-%m-%d %H:%M:%S"
        return (
            f"{_span(form, theirs)} UTC by the service's clock ({_span(form, ours)} by this "
            "machine's clock; the two disagree)"
        )

    def _shown(self, started_at: datetime, ended_at: datetime) -> Sequence[datetime]:
        """Return the times to show: a single page was there when its answer came."""
        return [ended_at] if self.method is Method.ONE_PAGE else [started_at, ended_at]

    def _basis(self) -> str:
        """Return what the proof of a list of several pages rests on."""
        if self.method is Method.COUNTED:
            return " (counted)"
        if rests_on_one_reading(self.method, self.chains):
            return ", if no row changed its place meanwhile"
        return f" ({self.chains} readings agree)"


def _span(form: str, times: Sequence[datetime]) -> str:
    return "–".join(format(time, form) for time in times)  # noqa: RUF001


def _count(rows: Mapping[int, Ranges]) -> int:
    """Return the number of rows in ranges by page."""
    return sum(end - first for ranges in rows.values() for first, end in ranges)


def _without(
    rows: Mapping[int, Ranges], erased: Mapping[int, Collection[int]]
) -> dict[int, Ranges]:
    """Return ranges by page without some rows of pages."""
    left = {}
    for page, ranges in rows.items():
        left[page] = ranges
        if erased.get(page):
            left[page] = tuple(_cut(ranges, erased[page]))
    return left


def _cut(ranges: Ranges, erased: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield a range for each row that is left."""
    for first, end in ranges:
        for row in range(first, end):
            if row not in erased:
                yield row, row + 1
