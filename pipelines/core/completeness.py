"""What is proven about one scan of a list, and what the next scan of that list should know."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from pipelines.core.key import key_fields
from pipelines.core.text import counted

AGREEING = 2  # readings that see a row that changes its place; one may not
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
        ended = min(self.ended_at, self.service_ended_at or self.ended_at)
        started = min(self.started_at, self.service_started_at or self.started_at)
        return min(started, ended), ended

    def without(self, erased: Mapping[int, Collection[int]]) -> "Completeness":
        """Return the proof of the same scan after rows were erased, by page."""
        used, conflicting = (
            {page: _without(ranges, erased.get(page, ())) for page, ranges in rows.items()}
            for rows in (self.used, self.conflicting)
        )
        rows = sum(end - first for ranges in used.values() for first, end in ranges)
        return msgspec.structs.replace(
            self,
            used=used,
            conflicting=conflicting,
            rows=rows,
            erased=self.erased + sum(map(len, erased.values())),
        )

    def sentence(self, stream: str) -> str:
        """Return what is proven of the list, for people."""
        size = f"{counted(self.rows, 'row')}, {counted(self.requests, 'request')}."
        aside = sum(end - first for ranges in self.conflicting.values() for first, end in ranges)
        size += f" {aside:,} more records are in quarantine." if aside else ""
        size += f" {self.erased:,} records were erased later." if self.erased else ""
        if self.cached_seconds:
            size += f" A cache answered with pages up to {self.cached_seconds} s old."
        if not self.complete:
            missing = "" if self.not_seen is None else f" {self.not_seen:,} rows were not seen."
            return f"{stream}: PARTIAL. {size}{missing} Reason: {self.reason}. No row is deleted."
        how = f"Contains every row that existed throughout {self._when()}{self._basis()}."
        if self.method is Method.ONE_PAGE:
            how = f"One page held the whole list at {self._when()}."
        key = self.traits.key
        named = (
            f"Primary key: {', '.join(key_fields(key))}."
            if key
            else "No primary key: rows are compared by content."
        )
        return f"{stream}: COMPLETE. {size} {how} {named}"

    def _when(self) -> str:
        """Return when the list was read, by both clocks if they disagree."""
        first = 1 if self.method is Method.ONE_PAGE else 0
        cached = timedelta(seconds=self.cached_seconds)
        ours = (self.started_at - cached, self.ended_at)[first:]
        if self.service_started_at is None or self.service_ended_at is None:
            return f"{_span('%H:%M:%S', ours)} UTC"
        theirs = (self.service_started_at - cached, self.service_ended_at)[first:]
        form = "%Y-%m-%d %H:%M:%S"
        return (
            f"{_span(form, theirs)} UTC by the service's clock ({_span(form, ours)} by this "
            "machine's clock; the two disagree)"
        )

    def _basis(self) -> str:
        """Return what the proof of a list of several pages rests on."""
        if self.method is Method.COUNTED:
            return " (counted)"
        if rests_on_one_reading(self.method, self.chains):
            return ", if no row changed its place meanwhile"
        return f" ({self.chains} readings agree)"


def _span(form: str, times: Sequence[datetime]) -> str:
    return "–".join(format(each, form) for each in times)  # noqa: RUF001


def _without(ranges: Ranges, rows: Collection[int]) -> Ranges:
    kept = (row for first, end in ranges for row in range(first, end) if row not in rows)
    return tuple((row, row + 1) for row in kept) if rows else ranges
