"""Here: records as the service sent them, by page and row of a scan file."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from pipelines.archive.records import parse_page
from pipelines.archive.scan_file import SealedScan
from pipelines.core.errors import ArchiveDamaged, UnexpectedAnswer
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan
from pipelines.versions.stores import Stores

PageRow = tuple[int, int]
"""Page and row of a record in its scan file."""
ScanName = tuple[str, str, str]
"""Connection, stream and identifier of a scan."""


def raw_records(
    stores: Stores, scan: ScanName, positions: Collection[PageRow]
) -> dict[PageRow, bytes]:
    """Return, of some records, those that a scan's file has, as received. Raises ArchiveDamaged."""
    file = stores.archive.file(*scan)
    if not file.exists():
        raise damaged(file, "was pruned" if _is_pruned(stores, scan) else "is missing")
    pages = {page for page, _row in positions}
    records = dict[PageRow, bytes]()
    for exchange in SealedScan.open(file).exchanges():
        if exchange.page not in pages:
            continue
        with suppress(UnexpectedAnswer):  # the file is another one
            page = parse_page(exchange.body or b"")
            for row, raw in enumerate(page.records):
                if (exchange.page, row) in positions:
                    records[exchange.page, row] = raw
    return records


def _is_pruned(stores: Stores, scan: ScanName) -> bool:
    _connection, _stream, scan_id = scan
    with stores.metadata.transaction() as session:
        row = session.get(Scan, scan_id)
    return row is not None and row.status == ScanStatus.PRUNED


def damaged(file: Path, why: str) -> ArchiveDamaged:
    """Return the error about a scan file that is not what it was."""
    return ArchiveDamaged(f"Scan file {file} {why}.", "Restore the scan file from a backup.")
