"""Here: which interrupted scan of a list a run goes on with.

Not here: how a scan is read (extract), and runs (read).
"""

import logging
from datetime import datetime

from pipelines.app.session import AppSession
from pipelines.archive.lines import ScanHeader
from pipelines.archive.scan_file import OpenScan
from pipelines.core.errors import ArchiveDamaged, NewerFormat
from pipelines.metadata import scans
from pipelines.metadata.tables import Scan

CHANGED = "The scan was begun with another address, path, limit, key or version of partner-sync."
ELSEWHERE = "The scan was begun on another machine, or its file was lost."
logger = logging.getLogger(__name__)


def resume_scan(session: AppSession, new: ScanHeader, not_before: datetime) -> OpenScan | None:
    """Return the open scan to go on with, which began at or after a time; None if there is none.

    Every other one of the list is abandoned, and one that asks for something else than `new`. The
    caller holds the lock of the list. Raises StorageFailed.
    """
    with session.metadata.transaction() as db:
        row = scans.scan_to_resume(db, new.connection, new.stream, not_before)
    if row is None:
        return None
    # Between the transactions, so that no other one waits for the file.
    scan, reason = _resume(session, row, new)
    with session.metadata.transaction() as db:
        row = db.merge(row)
        if scan is None:
            row.status = scans.ScanStatus.ABANDONED
            row.reason = reason
        else:
            row.run_id = new.run_id
    if scan is None:
        logger.info("%s: %s The list is read again.", new.stream, reason)
    else:
        began = f"{row.started_at:%Y-%m-%d %H:%M:%S} UTC"
        logger.info("%s: resuming the interrupted scan of %s.", new.stream, began)
    return scan


def _resume(session: AppSession, row: Scan, new: ScanHeader) -> tuple[OpenScan | None, str]:
    """Return an open scan, or None and why it cannot be resumed."""
    if not session.archive.has_open(row):
        return None, ELSEWHERE
    try:
        scan = session.archive.resume(row)
    except (ArchiveDamaged, NewerFormat) as error:
        return None, str(error)
    if not scan.header.begins_like(new):
        return None, CHANGED
    return scan, ""
