"""The archive: scan files below one folder, `<connection>/<stream>/<scan_id>.jsonl.zst`.

Here: which files there are, and where they are kept. Not here: what is in one (`scan_file.py`), and
which there should be (`pipelines/metadata`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pipelines.archive.lines import ScanHeader
from pipelines.archive.scan_file import OpenScan, SealedScan, damage_named, open_path
from pipelines.core.errors import ArchiveDamaged
from pipelines.core.files import private_folder, storing
from pipelines.files.store import IN_FOLDER, FileStore
from pipelines.metadata.tables import Scan

SEALED: Final = "*/*/*.jsonl.zst"


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
        with damage_named(path):
            if scan.sha256 not in {None, sealed.original}:
                raise ValueError("it is whole, but not the file that was sealed")
        return sealed
