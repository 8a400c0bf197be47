"""Here: records as the service sent them, by their place in a scan file."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from pipelines.archive.records import parse_page
from pipelines.archive.scan_file import SealedScan, scan_file
from pipelines.core.errors import ArchiveDamaged, UnexpectedAnswer
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan
from pipelines.publish.stores import Stores

Place = tuple[int, int]
"""Page and row of a record in its scan file."""
ScanName = tuple[str, str, str]
"""Connection, stream and identifier of a scan."""


def raw_records(session: Stores, scan: ScanName, places: Collection[Place]) -> dict[Place, bytes]:
    """Return, of some records, those that a scan's file has, as received. Raises ArchiveDamaged."""
    file = session.archive.folder / scan_file(*scan)
    if not file.exists():
        with session.metadata.transaction() as db:
            row = db.get(Scan, scan[-1])
        is_pruned = row is not None and row.status == ScanStatus.PRUNED
        raise damaged(file, "was pruned" if is_pruned else "is missing")
    pages, found = {page for page, _row in places}, dict[Place, bytes]()
    for exchange in SealedScan.open(file).exchanges():
        if exchange.page in pages:
            with suppress(UnexpectedAnswer):  # the file is another one
                records = enumerate(parse_page(exchange.body or b"").records)
                rows = (((exchange.page, row), raw) for row, raw in records)
                found |= {place: raw for place, raw in rows if place in places}
    return found


def damaged(file: Path, why: str) -> ArchiveDamaged:
    """Return the error about a scan file that is not what it was."""
    return ArchiveDamaged(f"Scan file {file} {why}.", "Restore the scan file from a backup.")
