"""Scan files: every request and answer of one read of one list, sealed with the proof.

A scan file is JSON Lines (`zstdcat FILE | jq`): the header, one line for each exchange, the seal.
Every `path` here is that of the sealed file; while it is read, the file's name ends in `.open`.

Here: one file, from its first line to its seal. Not here: what is in a line (`lines.py`), and the
folder of all files (`archive.py`).
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from pipelines.archive import lines
from pipelines.archive.lines import Exchange, Frame, ScanHeader, Seal
from pipelines.core.errors import ArchiveDamaged, NewerFormat
from pipelines.core.files import durable_rename, storing, write_durably
from pipelines.core.proof import Completeness
from pipelines.files.store import IN_FOLDER, FileStore


def open_path(path: Path) -> Path:
    """Return the name that a scan file has while it is read."""
    return path.with_name(f"{path.name}.open")


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Raise ArchiveDamaged for bytes that are not what was written, or cannot be read."""
    try:
        yield
    except PermissionError as error:
        raise ArchiveDamaged(
            f"This user may not read scan file {path}. It is not loaded; published versions are "
            "untouched.",
            "Give it the owner of the folder: another user, such as root, has run a command here.",
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error)
        if isinstance(error, OSError):
            reason = f"it cannot be read ({error.strerror})"
        raise ArchiveDamaged(
            f"Scan file {path} is damaged: {reason}. It is not loaded; published versions are "
            "untouched.",
            "Restore the file from a backup, or run `partner-sync sync` to read the list again.",
        ) from error


def _exchanges(file: Path, sha256: str) -> Iterator[Exchange]:
    """Read exchanges, up to the frame with this digest, which must be there."""
    with damage_named(file), file.open("rb") as source:
        for frame in lines.read_frames(source):
            line = frame.line()
            if isinstance(line, Exchange):
                yield line
            if frame.digest.hex() == sha256:
                return
        raise ValueError("its end is missing")


def _read_ends(file: Path) -> tuple[ScanHeader, Frame, Frame]:
    """Check the digest of every frame; return the header, the last frame but one, the last one.

    Raises NewerFormat before anything else of such a file is read.
    """
    with file.open("rb") as source:
        frames = lines.read_frames(source)
        first = next(frames)
        _require_known_format(file, first.format())
        before = first
        last = first
        for frame in frames:
            before = last
            last = frame
    header = first.line()
    if not isinstance(header, ScanHeader):
        raise ValueError("it does not begin with a header")  # noqa: TRY004 - of the file
    return header, before, last


def _require_known_format(file: Path, number: int) -> None:
    if number > lines.FORMAT:
        raise NewerFormat(
            f"Scan file {file} has format {number}, and this partner-sync reads formats up to "
            f"{lines.FORMAT}: a newer one wrote it. It is not loaded and was not changed.",
            "Install the newer partner-sync, then run `partner-sync versions build`.",
        )


@dataclass
class OpenScan:
    """A scan file that is being written, by one process: the caller holds the list's lock.

    `requests` and `rate_limited`, those answered 429, count what this process has appended.
    """

    path: Path
    header: ScanHeader
    _last: Frame
    _store: FileStore = IN_FOLDER
    requests: int = 0
    rate_limited: int = 0

    @classmethod
    def create(cls, path: Path, header: ScanHeader, store: FileStore = IN_FOLDER) -> Self:
        """Start a scan file, which `store` keeps once it is sealed. Raises StorageFailed."""
        first = lines.START.followed_by_line(header)
        with storing(path):
            write_durably(open_path(path), first.content)
        return cls(path, header, first, store)

    @classmethod
    def resume(cls, path: Path, store: FileStore = IN_FOLDER) -> Self:
        """Open a scan file again: cut off a broken last line, or a seal that nobody recorded.

        Raises ArchiveDamaged if the file is missing, or damaged before its end, and NewerFormat.
        """
        file = open_path(path)
        with damage_named(file):
            # The process was killed between the seal and the update of the scan's row.
            if path.exists():
                durable_rename(path, file)
            header, before, last = _read_ends(file)
            if isinstance(last.line(), Seal):
                last = before
            os.truncate(file, last.end)
        return cls(path, header, last, store)

    def append(self, exchange: Exchange, *, durable: bool = True) -> int:
        """Write one exchange and return its page. Raises StorageFailed; the rest is as before.

        One that is not `durable` is lost if the machine crashes, but not if this process does.
        """
        self._write(replace(exchange, page=self._last.number + 1), durable=durable)
        self.requests += exchange.purpose != lines.STOP
        self.rate_limited += exchange.status == HTTPStatus.TOO_MANY_REQUESTS
        return self._last.number

    def exchanges(self) -> Iterator[Exchange]:
        """Read what is in the file so far."""
        return _exchanges(open_path(self.path), self._last.digest.hex())

    def seal(self, completeness: Completeness, original: str | None = None) -> "SealedScan":
        """Write the seal, wait for the disk, keep the file without `.open`. Raises StorageFailed.

        `original` is the digest of the file before records were erased.
        """
        self._write(Seal(completeness, original))
        with storing(self.path):
            self._store.put(open_path(self.path), self.path)
        return SealedScan.open(self.path)

    def _write(self, line: lines.Line, *, durable: bool = True) -> None:
        frame = self._last.followed_by_line(line)
        # The file is opened for each line, at the end that this process knows: a part that a full
        # disk has left is cut off first, as it would end the file.
        with storing(self.path), open_path(self.path).open("r+b") as file:
            file.truncate(self._last.end)
            file.seek(self._last.end)
            file.write(frame.content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        self._last = frame


@dataclass(frozen=True)
class SealedScan:
    """A finished scan file, read-only.

    `sha256` is the digest of all lines, `original` the same before records were erased.
    """

    path: Path
    header: ScanHeader
    completeness: Completeness
    sha256: str
    original: str

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read a scan file and check the digest of every line.

        Raises ArchiveDamaged, NewerFormat.
        """
        with damage_named(path):
            header, _, last = _read_ends(path)
            seal = last.line()
            if not isinstance(seal, Seal) or path.stat().st_size != last.end:
                raise ValueError("it has no seal at its end")
        sha256 = last.digest.hex()
        return cls(path, header, seal.completeness, sha256, seal.original or sha256)

    @property
    def scan_id(self) -> str:
        """The scan's identifier."""
        return self.header.scan_id

    def exchanges(self) -> Iterator[Exchange]:
        """Read every exchange. Raises ArchiveDamaged, which names page and byte."""
        return _exchanges(self.path, self.sha256)

    def erase(self, is_erased: Callable[[bytes], bool], store: FileStore = IN_FOLDER) -> None:
        """Replace records by null in the file. Raises ArchiveDamaged, StorageFailed.

        The row of the scan needs no change: the seal keeps the digest that it names.
        """
        erased_rows = dict[int, list[int]]()
        part = OpenScan.create(self.path.with_name(f".{self.path.name}.erased.part"), self.header)
        for exchange in self.exchanges():
            rows = exchange.rows_where(is_erased)
            erased_rows[exchange.page] = rows
            part.append(exchange.without(rows), durable=False)
        part.seal(self.completeness.without(erased_rows), self.original)
        with storing(self.path):
            store.put(part.path, self.path)

    def pages(self) -> Iterator[Exchange]:
        """Read the exchanges with rows that are used or in conflict."""
        pages = self.completeness.used.keys() | self.completeness.conflicting.keys()
        for exchange in self.exchanges():
            if exchange.page in pages:
                yield exchange
