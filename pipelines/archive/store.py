"""The archive: a folder of scan files, `<connection>/<stream>/<scan_id>.jsonl.zst`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.archive.scan_file import OpenScan, ScanHeader, SealedScan, open_path
from pipelines.core.errors import ScanNotFound
from pipelines.core.files import private_folder
from pipelines.metadata.scans import SCAN_FILE_SUFFIX, scan_file
from pipelines.metadata.tables import Scan


@dataclass(frozen=True)
class Archive:
    """Scan files below one folder. Rows of `scans` say which there should be."""

    folder: Path

    def path_of(self, connection: str, stream: str, scan_id: str) -> Path:
        """Return the path of a sealed scan file, whether it exists or not."""
        return self.folder / scan_file(connection, stream, scan_id)

    def create(self, header: ScanHeader) -> OpenScan:
        """Start the scan file that a header describes. Raises StorageFailed."""
        path = self.path_of(header.connection, header.stream, header.scan_id)
        for folder in (self.folder, path.parent.parent):  # as parents they would become public
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
        path.unlink(missing_ok=True)
        open_path(path).unlink(missing_ok=True)

    def sealed_files(self) -> Iterator[Path]:
        """Return the sealed files, ordered by connection, stream and scan."""
        return iter(sorted(self.folder.glob(f"*/*/*{SCAN_FILE_SUFFIX}")))

    def open_files(self) -> Iterator[Path]:
        """Return the files that are being read or can be resumed, by their sealed names."""
        found = sorted(self.folder.glob(f"*/*/*{open_path(Path(SCAN_FILE_SUFFIX)).name}"))
        return (path.with_suffix("") for path in found)
