"""The archive: a folder of scan files, `<connection>/<stream>/<scan_id>.jsonl.zst`."""

from dataclasses import dataclass
from pathlib import Path

from pipelines.archive.scan_file import OpenScan, ScanHeader, SealedScan, open_path
from pipelines.core.errors import ScanNotFound
from pipelines.core.files import private_folder
from pipelines.metadata.tables import Scan

SHARED = ("scan_id", "run_id", "connection", "stream", "day", "started_at")


def scan_row(header: ScanHeader) -> Scan:
    """Return the row of a scan that begins; its file is below the archive."""
    file = f"{header.connection}/{header.stream}/{header.scan_id}.jsonl.zst"
    return Scan(**{name: getattr(header, name) for name in SHARED}, file=file)


@dataclass(frozen=True)
class Archive:
    """Scan files below one folder. Rows of `scans` say which there should be."""

    folder: Path

    def create(self, header: ScanHeader) -> OpenScan:
        """Start the scan file that a header describes. Raises StorageFailed."""
        path = self.folder / scan_row(header).file
        for folder in (self.folder, path.parent.parent, path.parent):  # parents would be public
            private_folder(folder)
        return OpenScan.create(path, header)

    def resume(self, scan: Scan) -> OpenScan:
        """Continue a scan whose row says that it is open. Raises ArchiveDamaged."""
        return OpenScan.resume(self.folder / scan.file)

    def open_sealed(self, scan: Scan) -> SealedScan:
        """Open a sealed scan. Raises ScanNotFound, ArchiveDamaged."""
        path = self.folder / scan.file
        if not path.exists():
            raise ScanNotFound(
                f"Scan {scan.scan_id} of `{scan.connection}` `{scan.stream}` has no file {path}. "
                "It cannot be loaded; published versions are untouched.",
                "Restore the file from a backup, or read the list again: `partner-sync sync`.",
            )
        return SealedScan.open(path)

    def delete(self, scan: Scan) -> None:
        """Delete the file of a scan, sealed or not."""
        path = self.folder / scan.file
        for file in (path, open_path(path)):
            file.unlink(missing_ok=True)
