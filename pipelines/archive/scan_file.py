"""Scan files: every request and answer of one read of one list, sealed with the proof.

A scan file is JSON Lines, one zstd frame a line (`zstdcat FILE | jq`). Line 1 is the header, then
one line for each exchange, the last line is the seal. Exchanges are numbered from 1 in file order.
Every `path` here is that of the sealed file; while it is read, the file's name ends in `.open`.
"""

import hashlib
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Self

from pipelines.archive import frames, lines
from pipelines.archive.lines import Exchange, PageRows, ScanHeader, Seal
from pipelines.archive.records import parse_page
from pipelines.core.completeness import Completeness
from pipelines.core.errors import ArchiveDamaged, ScanNotFound, StorageFailed
from pipelines.core.files import durable_rename, private_folder, write_durably

__all__ = ["Exchange", "OpenScan", "PageRows", "ScanHeader", "SealedScan", "open_path"]

OPEN_SUFFIX = ".open"
TOO_MANY_REQUESTS = 429


def open_path(path: Path) -> Path:
    """Return the name that a scan file has while it is read."""
    return path.with_name(path.name + OPEN_SUFFIX)


@contextmanager
def _damage_named(path: Path, where: str = "") -> Iterator[None]:
    """Raise ArchiveDamaged for bytes that are not what was written, or cannot be read."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = f"it cannot be read ({error.strerror})" if isinstance(error, OSError) else error
        raise ArchiveDamaged(
            f"Scan file {path} is damaged: {where}{reason}. It is not loaded; published versions "
            "are untouched.",
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


def _at(number: int, start: int) -> str:
    return f"page {number} (byte {start}): "


def _read_exchanges(
    path: Path, bounds: Sequence[int], first: int = 1
) -> Iterator[tuple[int, Exchange]]:
    """Read the exchanges between bounds; the first of them has the number `first`."""
    with _damage_named(path), path.open("rb") as source:
        for number, (start, end) in enumerate(pairwise(bounds), first):
            with _damage_named(path, _at(number, start)):
                source.seek(start)
                line = frames.decompress(source.read(end - start))
                exchange = lines.decode_exchange(line, number)
            yield number, exchange


class OpenScan:
    """A scan file that is being written, by one process: the caller holds the list's lock."""

    def __init__(
        self, path: Path, header: ScanHeader, bounds: list[int], rate_limited: int = 0
    ) -> None:
        self.path = path
        self.header = header
        self._bounds = bounds  # where the exchanges' frames begin, then the end of the file
        self._rate_limited = rate_limited
        with _failure_named(path):
            self._file = os.open(open_path(path), os.O_WRONLY | os.O_APPEND)

    @classmethod
    def create(cls, path: Path, header: ScanHeader) -> Self:
        """Start a scan file. Raises StorageFailed."""
        frame = frames.compress(lines.encode(lines.HeaderLine(header)))
        private_folder(path.parent)
        if path.exists() or open_path(path).exists():
            raise StorageFailed(
                f"Scan file {path} exists already. It was not changed, and nothing was read.",
                "Run `partner-sync sync` again.",
            )
        with _failure_named(path):
            write_durably(open_path(path), frame)
        return cls(path, header, [len(frame)])

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Open a scan file again: cut off a broken last frame, or a seal that nobody recorded.

        Raises ArchiveDamaged where the file is missing, or damaged before its end.
        """
        file = open_path(path)
        with _damage_named(file):
            if path.exists():  # killed between the seal and the update of the scan's row
                durable_rename(path, file)
            with file.open("rb") as source:
                found = frames.whole_frames(source)
                if (first := next(found, None)) is None:
                    raise ValueError("its header is not whole")
                header = lines.decode(first.line, lines.HeaderLine).header
                bounds, rate_limited = [first.end], 0
                for number, frame in enumerate(found, 1):
                    if frame.line.startswith(lines.SEAL_START):
                        break
                    with _damage_named(file, _at(number, frame.start)):
                        exchange = lines.decode_exchange(frame.line, number)
                    bounds.append(frame.end)
                    rate_limited += exchange.status == TOO_MANY_REQUESTS
                else:
                    source.seek(bounds[-1])
                    if frames.any_whole_frame(source.read()):
                        where = _at(len(bounds), bounds[-1])
                        raise ValueError(f"{where}broken, but pages follow it")
            os.truncate(file, bounds[-1])
        return cls(path, header, bounds, rate_limited)

    def append(self, exchange: Exchange, *, durable: bool = True) -> int:
        """Write one exchange; return its number. `durable` waits for the disk.

        The operating system has the exchange at once in any case: only a crash of the machine can
        lose one that is not durable. Raises StorageFailed; the file is then as before.
        """
        number = len(self._bounds)
        self._write(frames.compress(lines.encode_exchange(number, exchange)))
        self._rate_limited += exchange.status == TOO_MANY_REQUESTS
        if durable:
            with _failure_named(self.path):
                os.fsync(self._file)
        return number

    def exchanges(self) -> Iterator[tuple[int, Exchange]]:
        """Read what is in the file so far: numbers and exchanges."""
        return _read_exchanges(open_path(self.path), tuple(self._bounds))

    def seal(self, completeness: Completeness) -> "SealedScan":
        """Write the seal, wait for the disk, rename away `.open`. Raises StorageFailed."""
        *offsets, start = self._bounds
        seal = Seal(completeness, self._rate_limited, tuple(offsets))
        end = frames.compress(lines.encode(lines.SealLine(seal))) + frames.pack_trailer(start)
        with _failure_named(self.path):
            with open_path(self.path).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256")
            digest.update(end)
            self._write(end + digest.digest())
            os.fsync(self._file)
            self.close()
            durable_rename(open_path(self.path), self.path)
        return SealedScan.open(self.path)

    def close(self) -> None:
        """Close without sealing; the file stays resumable."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, data: bytes) -> None:
        """Append bytes, all or none: what follows a broken frame could not be read."""
        left = memoryview(data)
        with _failure_named(self.path):
            try:
                while left:
                    left = left[os.write(self._file, left) :]
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._file, self._bounds[-1])
                raise
        self._bounds.append(self._bounds[-1] + len(data))


@dataclass(frozen=True)
class SealedScan:
    """A finished scan file, read-only."""

    path: Path
    header: ScanHeader
    completeness: Completeness
    sha256: str  # of the file, without these 32 bytes at its end
    rate_limited: int  # answers with status 429
    _bounds: tuple[int, ...] = field(repr=False)  # starts of the exchanges' frames, then the seal's

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read header and seal. Raises ArchiveDamaged where there is no valid seal."""
        with _damage_named(path), path.open("rb") as file:
            found, digest = frames.read_seal_frame(file)
            seal = lines.decode(found.line, lines.SealLine).seal
            bounds = (*seal.offsets, found.start)
            file.seek(0)
            line = frames.decompress(file.read(bounds[0]))
            header = lines.decode(line, lines.HeaderLine).header
        return cls(path, header, seal.completeness, digest.hex(), seal.rate_limited, bounds)

    @property
    def scan_id(self) -> str:
        """The scan's identifier."""
        return self.header.scan_id

    def exchanges(self) -> Iterator[tuple[int, Exchange]]:
        """Read every exchange. Raises ArchiveDamaged where a digest does not match."""
        return _read_exchanges(self.path, self._bounds)

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
        ((_, exchange),) = _read_exchanges(
            self.path, self._bounds[number - 1 : number + 1], first=number
        )
        if exchange.body is None:
            raise ScanNotFound(f"Request {number} of scan {self.scan_id} got no page.")
        return exchange.body

    def verify(self) -> None:
        """Check every digest. Raises ArchiveDamaged that names page and offset."""
        now = SealedScan.open(self.path)  # the file may have changed since this object was made
        for _ in self.exchanges():
            pass
        with (
            _damage_named(self.path),
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
            memoryview(content) as view,
            view[: -frames.DIGEST_SIZE] as digested,
        ):
            if not self.sha256 == now.sha256 == hashlib.sha256(digested).hexdigest():
                raise ValueError("the digest of the whole file does not match")
