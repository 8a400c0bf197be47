"""Scan files: every request and answer of one read of one list, sealed with the proof.

A scan file is JSON Lines, one zstd frame a line (`zstdcat FILE | jq`). Line 1 is the header, then
one line for each exchange, the last line is the seal. Exchanges are numbered from 1 in file order.
Every `path` here is that of the sealed file; while it is read, the file's name ends in `.open`.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pipelines.archive import frames, lines
from pipelines.archive.content import (
    TOO_MANY_REQUESTS,
    Content,
    cut,
    damaged,
    open_path,
    read_exchanges,
    read_open_file,
)
from pipelines.archive.lines import Exchange, PageRows, ScanHeader, Seal
from pipelines.archive.records import parse_page
from pipelines.core.clock import Clock, SystemClock
from pipelines.core.completeness import Completeness
from pipelines.core.errors import ScanNotFound, StorageFailed
from pipelines.core.files import durable_rename, private_folder, write_durably

__all__ = ["Exchange", "OpenScan", "PageRows", "ScanHeader", "SealedScan", "open_path"]

GROUP_SECONDS = 0.1  # exchanges that do not wait for the disk are flushed at least so often


class OpenScan:
    """A scan file that is being written, by one process: the caller holds the list's lock."""

    clock: Clock = SystemClock()

    def __init__(self, path: Path, content: Content) -> None:
        self.path = path
        self.header = content.header
        self._starts = content.starts
        self._end = content.end
        self._rate_limited = content.rate_limited
        self._unflushed_since: float | None = None
        try:
            with open_path(path).open("rb") as file:
                self._digest = hashlib.file_digest(file, "sha256")
            self._file = os.open(open_path(path), os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise _storage_failed(path, error) from error

    @classmethod
    def create(cls, path: Path, header: ScanHeader) -> Self:
        """Start a scan file. Raises StorageFailed."""
        frame = frames.compress(lines.encode_header(header))
        private_folder(path.parent)
        if path.exists() or open_path(path).exists():
            raise StorageFailed(
                f"Scan file {path} exists already. It was not changed, and nothing was read.",
                "Run `partner-sync sync` again.",
            )
        try:
            write_durably(open_path(path), frame)
        except OSError as error:
            raise _storage_failed(path, error) from error
        return cls(path, Content(header, [], len(frame)))

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Open a scan file again: cut off a broken last frame, or a seal that nobody recorded.

        Raises ArchiveDamaged where the file is missing, or damaged before its end.
        """
        try:
            if path.exists():  # killed between the seal and the update of the scan's row
                durable_rename(path, open_path(path))
            content = read_open_file(path)
            if content.end < open_path(path).stat().st_size:
                cut(path, content)
        except OSError as error:
            raise damaged(path, f"it cannot be read ({error.strerror})") from error
        return cls(path, content)

    def append(self, exchange: Exchange, *, durable: bool = True) -> int:
        """Write one exchange; return its number. `durable` waits for the disk.

        The operating system has the exchange at once in any case: only a crash of the machine can
        lose one that is not durable. Raises StorageFailed; the file is then as before.
        """
        number = len(self._starts) + 1
        start = self._end
        self._write(frames.compress(lines.encode_exchange(number, exchange)))
        self._starts.append(start)
        self._rate_limited += exchange.status == TOO_MANY_REQUESTS
        now = self.clock.monotonic()
        if self._unflushed_since is None:
            self._unflushed_since = now
        if durable or now - self._unflushed_since >= GROUP_SECONDS:
            self.flush()
        return number

    def flush(self) -> None:
        """Make every exchange so far durable. Raises StorageFailed."""
        if self._unflushed_since is None:
            return
        try:
            os.fsync(self._file)
        except OSError as error:
            raise _storage_failed(self.path, error) from error
        self._unflushed_since = None

    def exchanges(self) -> Iterator[tuple[int, Exchange]]:
        """Read what is in the file so far: numbers and exchanges."""
        return read_exchanges(self.path, open_path(self.path), (*self._starts, self._end))

    def seal(self, completeness: Completeness) -> "SealedScan":
        """Write the seal, wait for the disk, rename away `.open`. Raises StorageFailed."""
        seal = Seal(
            completeness=completeness,
            pages=len(self._starts),
            rate_limited=self._rate_limited,
            offsets=tuple(self._starts),
            sha256=self._digest.hexdigest(),
        )
        frame = frames.compress(lines.encode_seal(seal))
        self._write(frame + frames.pack_trailer(frame, self._end))
        try:
            os.fsync(self._file)
            self.close()
            durable_rename(open_path(self.path), self.path)
        except OSError as error:
            raise _storage_failed(self.path, error) from error
        return SealedScan.open(self.path)

    def close(self) -> None:
        """Close without sealing; the file stays resumable."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, data: bytes) -> None:
        """Append bytes, all or none: what follows a broken frame could not be read."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise _storage_failed(self.path, error) from error
        self._end += len(data)
        self._digest.update(data)


@dataclass(frozen=True)
class SealedScan:
    """A finished scan file, read-only."""

    path: Path
    header: ScanHeader
    completeness: Completeness
    sha256: str  # of everything before the seal
    rate_limited: int  # answers with status 429
    _bounds: tuple[int, ...] = field(repr=False)  # starts of the exchanges' frames, then the seal's

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read header and seal. Raises ArchiveDamaged where there is no valid seal."""
        try:
            found = frames.read_seal_frame(path)
            seal = lines.decode_seal(found.line)
            bounds = (*seal.offsets, found.start)
            with path.open("rb") as file:
                header = lines.decode_header(frames.decompress(file.read(bounds[0])))
        except OSError as error:
            raise damaged(path, f"it cannot be read ({error.strerror})") from error
        except ValueError as error:
            raise damaged(path, str(error)) from error
        return cls(path, header, seal.completeness, seal.sha256, seal.rate_limited, bounds)

    @property
    def scan_id(self) -> str:
        """The scan's identifier."""
        return self.header.scan_id

    def exchanges(self) -> Iterator[tuple[int, Exchange]]:
        """Read every exchange. Raises ArchiveDamaged where a digest does not match."""
        return read_exchanges(self.path, self.path, self._bounds)

    def pages(self) -> Iterator[PageRows]:
        """Read the pages that hold used or conflicting rows, in file order."""
        proof = self.completeness
        for number in sorted({*proof.used, *proof.conflicting}):
            records = parse_page(self.page(number)).records
            used, conflicting = proof.used.get(number, ()), proof.conflicting.get(number, ())
            yield PageRows(number, records, used, conflicting)

    def page(self, number: int) -> bytes:
        """Return the body of one exchange. Raises ScanNotFound, ArchiveDamaged."""
        if not 1 <= number < len(self._bounds):
            raise ScanNotFound(f"Scan {self.scan_id} has no page {number}.")
        bounds = self._bounds[number - 1 : number + 1]
        ((_, exchange),) = read_exchanges(self.path, self.path, bounds, number)
        if exchange.body is None:
            raise ScanNotFound(f"Request {number} of scan {self.scan_id} got no page.")
        return exchange.body

    def verify(self) -> None:
        """Check every digest. Raises ArchiveDamaged that names page and offset."""
        SealedScan.open(self.path)  # the file may have changed since this object was made
        for _ in self.exchanges():
            pass
        with self.path.open("rb") as file:
            digest = hashlib.sha256()
            left = self._bounds[-1]
            while left and (data := file.read(min(left, frames.CHUNK))):
                digest.update(data)
                left -= len(data)
        if digest.hexdigest() != self.sha256:
            raise damaged(self.path, "the digest of the whole file does not match")


def _storage_failed(path: Path, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"Cannot write scan file {path}: {error.strerror}. The pages before are kept; analysts "
        "still see the published version.",
        "Make room or correct the permissions, then run `partner-sync sync` to resume.",
    )
