"""Here: a person lets a held scan through, or refuses it.

Not here: why a scan is held (load.findings, versions.rollback), how it is loaded then (build).
"""

from sqlalchemy.orm import Session

from pipelines.app.session import AppSession
from pipelines.core.errors import PartnerSyncError
from pipelines.metadata import scans
from pipelines.metadata.decisions import add_decision
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan


def decide_held_scan(
    session: AppSession, connection: str, stream: str, reason: str, *, reject: bool
) -> str:
    """Approve or reject the held scan of a list; return what was decided, as a sentence.

    The decision is about this scan only: a later scan passes the same guards.
    """
    # It raises for a list that is not configured, and names those that are.
    session.lists([connection], [stream])
    kind = "reject" if reject else "approve"
    status = ScanStatus.REJECTED if reject else ScanStatus.APPROVED
    with session.metadata.transaction() as db:
        scan = _held_scan(db, connection, stream)
        if scan is None:
            raise PartnerSyncError(
                f"No scan of {connection}/{stream} is held. Nothing was changed.",
                "Run `partner-sync status` to see what waits for a decision.",
            )
        # `set_status` replaces it by the reason of the decision.
        held_because = scan.reason
        add_decision(db, session.decision(kind, scan.scan_id, reason))
        scans.set_status(db, scan.scan_id, status, reason)
    began = f"{scan.started_at:%Y-%m-%d %H:%M}"
    return f"{status.capitalize()} the scan of {connection}/{stream} of {began} ({held_because})."


def _held_scan(db: Session, connection: str, stream: str) -> Scan | None:
    """Return the scan of a list that waits for a decision; None if none does."""
    for scan in scans.held_scans(db):
        if (scan.connection, scan.stream) == (connection, stream):
            return scan
    return None
