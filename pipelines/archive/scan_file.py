"""Scan files: every request and answer of one read of one list, sealed with the proof.

A scan file is JSON Lines, one zstd frame a line (`zstdcat FILE | jq`). Line 1 is the header, then
one line for each exchange, the last line is the seal. Exchanges are numbered from 1 in file order.
"""

from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from pipelines.core.completeness import Completeness, ListMemory, Ranges, ReadBudget


class ScanHeader(msgspec.Struct, frozen=True):
    """Line 1: all that a resumed read needs, so that later settings do not matter."""

    scan_id: str
    run_id: str
    connection: str
    stream: str
    path: str
    actor: str
    started_at: datetime
    day: date
    configured_key: str | None
    memory: ListMemory
    budget: ReadBudget
    algorithm: int


class Exchange(msgspec.Struct, frozen=True):
    """One request and what came of it.

    `ask` numbers the Ask (from 1) that the answer was used for; None for an answer that nobody used
    and for a refused or failed request. `sent` and `received` are event counters. `body` is the
    answer exactly as received, None where there is none. `error` says why a request has no page.
    A line with `purpose` "stop" records that reading was stopped, with the reason in `error`.
    """

    ask: int | None
    sent: int
    received: int
    offset: int
    limit: int
    purpose: str
    status: int | None
    sent_at: datetime
    received_at: datetime
    request_id: str | None
    headers: dict[str, str]
    body: bytes | None
    error: str | None = None


class PageRows(NamedTuple):
    """A page as the loader sees it: raw records, which of them count, which go to quarantine."""

    number: int
    records: list[bytes]
    used: Ranges
    conflicting: Ranges


class OpenScan:
    """A scan file that is being written. One process at a time; the caller holds the list's lock."""

    header: ScanHeader

    @classmethod
    def create(cls, path: Path, header: ScanHeader) -> Self:
        """Start a scan file. Raises StorageFailed."""
        raise NotImplementedError

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Open a scan file again; cut off a broken last frame. Raises ArchiveDamaged."""
        raise NotImplementedError

    def append(self, exchange: Exchange, *, durable: bool = True) -> int:
        """Write one exchange; return its number. `durable` waits for the disk."""
        raise NotImplementedError

    def exchanges(self) -> Iterator[tuple[int, Exchange]]:
        """Read what is in the file so far: numbers and exchanges."""
        raise NotImplementedError

    def seal(self, completeness: Completeness) -> "SealedScan":
        """Write the seal, wait for the disk, rename away `.open`."""
        raise NotImplementedError

    def close(self) -> None:
        """Close without sealing; the file stays resumable."""
        raise NotImplementedError


class SealedScan:
    """A finished scan file, read-only."""

    path: Path
    header: ScanHeader
    completeness: Completeness
    sha256: str

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read header and seal. Raises ArchiveDamaged where there is no valid seal."""
        raise NotImplementedError

    @property
    def scan_id(self) -> str:
        """The scan's identifier."""
        raise NotImplementedError

    def exchanges(self) -> Iterator[tuple[int, Exchange]]:
        """Read every exchange. Raises ArchiveDamaged where a digest does not match."""
        raise NotImplementedError

    def pages(self) -> Iterator[PageRows]:
        """Read the pages that hold used or conflicting rows, in file order."""
        raise NotImplementedError

    def page(self, number: int) -> bytes:
        """Return the body of one exchange."""
        raise NotImplementedError

    def verify(self) -> None:
        """Check every digest. Raises ArchiveDamaged that names page and offset."""
        raise NotImplementedError
