"""Scan files: every request and answer of one read of one list, sealed with the proof.

A scan file is JSON Lines (`zstdcat FILE | jq`): the header, one line for each exchange, the seal.
Every `path` here is that of the sealed file; while it is read, the file's name ends in `.open`.
"""

import errno
import os
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from pipelines.archive import lines
from pipelines.archive.lines import START, Exchange, Frame, ScanHeader, Seal
from pipelines.archive.records import parse_page
from pipelines.core.completeness import Completeness, Ranges
from pipelines.core.errors import ArchiveDamaged, StorageFailed
from pipelines.core.files import durable_rename, write_durably

__all__ = ["Exchange", "OpenScan", "PageRows", "ScanHeader", "SealedScan", "open_path"]

TOO_MANY_REQUESTS = 429


def open_path(path: Path) -> Path:
    """Return the name that a scan file has while it is read."""
    return path.with_name(f"{path.name}.open")


class PageRows(NamedTuple):
    """A page as the loader sees it: raw records, which of them count, which go to quarantine."""

    number: int
    records: list[bytes]
    used: Ranges
    conflicting: Ranges


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Raise ArchiveDamaged for bytes that are not what was written, or cannot be read."""
    try:
        yield
    except (OSError, ValueError, RecursionError, msgspec.DecodeError) as error:
        reason = f"it cannot be read ({error.strerror})" if isinstance(error, OSError) else error
        raise ArchiveDamaged(
            f"Scan file {path} is damaged: {reason}. It is not loaded; published versions are "
            "untouched.",
            "Restore the file from a backup, or run `partner-sync sync` to read the list again.",
        ) from error


@contextmanager
def _failure_named(path: Path) -> Iterator[None]:
    """Raise StorageFailed where the disk does not store what is written."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(
            f"Cannot write scan file {path}: {error.strerror}. The pages before are kept; analysts "
            "still see the published version.",
            "Make room or correct the permissions, then run `partner-sync sync` to resume.",
        ) from error


def _read(path: Path, numbers: Container[int], last: str) -> Iterator[tuple[int, Exchange]]:
    """Read exchanges by number. The frame with the digest `last` must be in the file."""
    with _damage_named(path), path.open("rb") as source:
        for frame in lines.read_frames(source):
            if frame.number in numbers:
                yield frame.number, lines.read_exchange(frame.line())
            if frame.digest.hex() == last:
                return
        raise ValueError("its end is missing")


@dataclass
class OpenScan:
    """A scan file that is being written, by one process: the caller holds the list's lock."""

    path: Path
    header: ScanHeader
    _last: Frame
    _rate_limited: int = 0

    def __post_init__(self) -> None:
        with _failure_named(self.path):
            self._file = open_path(self.path).open("ab", buffering=0)

    @classmethod
    def create(cls, path: Path, header: ScanHeader) -> Self:
        """Start a scan file. Raises StorageFailed."""
        first = START.followed_by(lines.compress(header))
        with _failure_named(path):
            if path.exists() or open_path(path).exists():
                raise FileExistsError(errno.EEXIST, "it exists already")
            write_durably(open_path(path), first.head() + first.data)
        return cls(path, header, first)

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Open a scan file again: cut off a broken last line, or a seal that nobody recorded.

        Raises ArchiveDamaged if the file is missing, or damaged before its end.
        """
        file, first, last, statuses = open_path(path), b"", START, []
        with _damage_named(file):
            if path.exists():  # killed between the seal and the update of the scan's row
                durable_rename(path, file)
            with file.open("rb") as source:
                for frame in lines.read_frames(source):
                    if (line := frame.line()).startswith(lines.SEAL_BEGINS):
                        break
                    first, last = first or line, frame
                    if frame.number:
                        statuses.append(lines.read_exchange(line).status)
            header = msgspec.json.decode(first, type=ScanHeader)
            os.truncate(file, last.end)
        return cls(path, header, last, statuses.count(TOO_MANY_REQUESTS))

    def append(self, exchange: Exchange, *, durable: bool = True) -> int:
        """Write one exchange and return its number. Raises StorageFailed; the file is as before.

        One that is not `durable` is lost if the machine crashes, but not if this process does.
        """
        self._write(lines.exchange_line(self._last.number + 1, exchange), durable=durable)
        self._rate_limited += exchange.status == TOO_MANY_REQUESTS
        return self._last.number

    def exchanges(self) -> Iterator[tuple[int, Exchange]]:
        """Read what is in the file so far: numbers and exchanges."""
        numbers = range(1, self._last.number + 1)
        return _read(open_path(self.path), numbers, self._last.digest.hex())

    def seal(self, completeness: Completeness) -> "SealedScan":
        """Write the seal, wait for the disk, rename away `.open`. Raises StorageFailed."""
        self._write(Seal(completeness, self._rate_limited))
        self.close()
        with _failure_named(self.path):
            durable_rename(open_path(self.path), self.path)
        return SealedScan.open(self.path)

    def close(self) -> None:
        """Close without sealing; the file stays resumable."""
        self._file.close()

    def _write(self, line: msgspec.Struct, *, durable: bool = True) -> None:
        """Append a line, all of it or nothing: what follows a broken one could not be read."""
        frame = self._last.followed_by(lines.compress(line))
        left = memoryview(frame.head() + frame.data)
        with _failure_named(self.path):
            try:
                while left:
                    left = left[self._file.write(left) :]
                if durable:
                    os.fsync(self._file.fileno())
            except OSError:
                with suppress(OSError):
                    self._file.truncate(self._last.end)
                raise
        self._last = frame


@dataclass(frozen=True)
class SealedScan:
    """A finished scan file, read-only."""

    path: Path
    header: ScanHeader
    completeness: Completeness
    rate_limited: int  # answers with status 429
    sha256: str  # of all lines
    _numbers: range  # of the exchanges

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read a scan file and check the digest of every line. Raises ArchiveDamaged."""
        with _damage_named(path), path.open("rb") as source:
            frames = lines.read_frames(source)
            first = next(frames)
            last = reduce(lambda _before, frame: frame, frames, first)
            size = source.seek(0, os.SEEK_END)
            if size != last.end or not last.line().startswith(lines.SEAL_BEGINS):
                raise ValueError("it has no seal at its end")
            header = msgspec.json.decode(first.line(), type=ScanHeader)
            seal = msgspec.json.decode(last.line(), type=Seal)
        numbers, sha256 = range(1, last.number), last.digest.hex()
        return cls(path, header, seal.completeness, seal.rate_limited, sha256, numbers)

    @property
    def scan_id(self) -> str:
        """The scan's identifier."""
        return self.header.scan_id

    def exchanges(self) -> Iterator[tuple[int, Exchange]]:
        """Read every exchange. Raises ArchiveDamaged, which names page and byte."""
        return _read(self.path, self._numbers, self.sha256)

    def pages(self) -> Iterator[PageRows]:
        """Read the pages that hold used or conflicting rows, in file order."""
        used, conflicting = self.completeness.used, self.completeness.conflicting
        for number, exchange in _read(self.path, {*used, *conflicting}, self.sha256):
            records = parse_page(exchange.body or b"").records
            yield PageRows(number, records, used.get(number, ()), conflicting.get(number, ()))

    def verify(self) -> None:
        """Check every digest again. Raises ArchiveDamaged, which names page and byte."""
        for _ in self.exchanges():
            pass
