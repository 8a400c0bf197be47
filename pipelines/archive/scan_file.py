"""Scan files: every request and answer of one read of one list, sealed with the proof.

A scan file is JSON Lines (`zstdcat FILE | jq`): the header, one line for each exchange, the seal.
Every `path` here is that of the sealed file; while it is read, the file's name ends in `.open`.
The archive is a folder of them: `<connection>/<stream>/<scan_id>.jsonl.zst`.

Here: files, from their first line to their deletion. Not here: what is in a line (`lines.py`), and
which scans there should be (`pipelines/metadata`).
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, Self

from msgspec.structs import replace

from pipelines.archive import lines
from pipelines.archive.lines import Exchange, Frame, ScanHeader, Seal
from pipelines.core.errors import ArchiveDamaged, NewerFormat
from pipelines.core.files import durable_rename, private_folder, storing, write_durably
from pipelines.core.proof import Completeness
from pipelines.files.store import IN_FOLDER, FileStore
from pipelines.metadata.tables import Scan

SEALED: Final = "*/*/*.jsonl.zst"


def open_path(path: Path) -> Path:
    """Return the name that a scan file has while it is read."""
    return path.with_name(f"{path.name}.open")


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Raise ArchiveDamaged for bytes that are not what was written, or cannot be read."""
    try:
        yield
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
    with _damage_named(file), file.open("rb") as source:
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
        with _damage_named(file):
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
        with _damage_named(path):
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


def scan_row(header: ScanHeader) -> Scan:
    """Return the row of a scan that begins; its file is below the archive."""
    return Scan(
        scan_id=header.scan_id,
        run_id=header.run_id,
        connection=header.connection,
        stream=header.stream,
        day=header.day,
        started_at=header.started_at,
        file=scan_file(header.connection, header.stream, header.scan_id),
    )


def scan_file(connection: str, stream: str, scan_id: str) -> str:
    """Return the name of a sealed scan's file below the archive."""
    return f"{connection}/{stream}/{scan_id}.jsonl.zst"


@dataclass(frozen=True)
class Archive:
    """Scan files below one folder. Rows of `scans` say which there should be.

    One that is being written is on this machine only. `store` keeps those that are sealed.
    """

    folder: Path
    store: FileStore = IN_FOLDER

    def create(self, header: ScanHeader) -> OpenScan:
        """Start the scan file that a header describes. Raises StorageFailed."""
        path = self.folder / scan_row(header).file
        # One by one: parents that are made with a folder would be public.
        for folder in (self.folder, path.parent.parent, path.parent):
            private_folder(folder)
        return OpenScan.create(path, header, self.store)

    def resume(self, scan: Scan) -> OpenScan:
        """Continue a scan whose row says that it is open. Raises ArchiveDamaged."""
        return OpenScan.resume(self.folder / scan.file, self.store)

    def has_open(self, scan: Scan) -> bool:
        """Return whether there is a file of a scan that has not ended, as far as is known here.

        Raises StorageFailed.
        """
        path = self.folder / scan.file
        return open_path(path).exists() or self.store.get(path).exists()

    def is_open_here(self, scan: Scan) -> bool:
        """Return whether the file of a scan is being written on this machine."""
        return open_path(self.folder / scan.file).exists()

    def open_files(self) -> list[Path]:
        """Return the files on this machine of scans that were not sealed."""
        return sorted(self.folder.glob(f"{SEALED}.open"))

    def open_sealed(self, scan: Scan) -> SealedScan:
        """Open a sealed scan.

        Raises ArchiveDamaged, for a missing or another scan's file too, NewerFormat, StorageFailed.
        """
        path = self.store.get(self.folder / scan.file)
        try:
            return self._open_own(path, scan)
        except ArchiveDamaged:
            if not self.store.get_again(path):
                raise
        return self._open_own(path, scan)

    def file(self, connection: str, stream: str, scan_id: str) -> Path:
        """Return the path of a sealed scan's file, which may not exist. Raises StorageFailed."""
        return self.store.get(self.folder / scan_file(connection, stream, scan_id))

    def erase(self, scan: Scan, is_erased: Callable[[bytes], bool]) -> None:
        """Replace records of a sealed scan by null. Raises ArchiveDamaged, StorageFailed."""
        self.open_sealed(scan).erase(is_erased, self.store)

    def delete(self, scans: Iterable[Scan]) -> None:
        """Delete the files of scans that are not read now. Raises StorageFailed."""
        for scan in scans:
            path = self.folder / scan.file
            with storing(path):
                self.store.delete(path)
                open_path(path).unlink(missing_ok=True)

    def connections(self) -> set[str]:
        """Return the connections that sealed or open scan files are of. Raises StorageFailed."""
        files = [*self.folder.glob("*/*/*"), *self.store.list(self.folder, SEALED)]
        return {file.relative_to(self.folder).parts[0] for file in files}

    def unknown_files(self, known: Iterable[Scan]) -> list[Path]:
        """Return the sealed scan files that no row of `scans` names. Raises StorageFailed."""
        known_files = {self.folder / scan.file for scan in known}
        return sorted(self.store.list(self.folder, SEALED).keys() - known_files)

    @staticmethod
    def _open_own(path: Path, scan: Scan) -> SealedScan:
        sealed = SealedScan.open(path)
        with _damage_named(path):
            if scan.sha256 not in {None, sealed.original}:
                raise ValueError("it is whole, but not the file that was sealed")
        return sealed
