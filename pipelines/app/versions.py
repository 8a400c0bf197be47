"""Versions of the warehouse: list, rebuild, roll back; decide about scans that are held."""

from typing import Any

from pipelines.app.session import AppSession
from pipelines.core.errors import PartnerSyncError
from pipelines.metadata import scans
from pipelines.metadata.decisions import add_decision
from pipelines.metadata.tables import VersionRow
from pipelines.publish.build import rebuild
from pipelines.publish.versions import checkpoint, rollback

__all__ = ["decide_held_scan", "list_versions", "rebuild", "rollback"]


def list_versions(session: AppSession) -> list[dict[str, Any]]:
    """Return the versions whose files exist, newest first. `content` names the checkpoint."""
    published, files = session.warehouse.published(), session.warehouse.versions()
    marks = {checkpoint(session): " (checkpoint)"}
    with session.metadata.transaction() as db:
        rows = {row.number: row for row in db.query(VersionRow)}
    return [
        {
            "version": version.number,
            "published": version == published,
            "bytes": version.path.stat().st_size,
            "created_at": row and row.created_at,
            "content": (row.note if row else "") + marks.get(version, ""),
        }
        for version, row in ((each, rows.get(each.number)) for each in reversed(files))
    ]


def decide_held_scan(
    session: AppSession, connection: str, stream: str, reason: str, *, reject: bool = False
) -> str:
    """Approve or reject the held scan of a list; return what was decided, as a sentence.

    The decision is about this scan only: a later scan passes the same guards.
    """
    session.lists([connection], [stream])
    status = scans.ScanStatus.REJECTED if reject else scans.ScanStatus.APPROVED
    about = (connection, stream)
    with session.metadata.transaction() as db:
        held = [each for each in scans.held_scans(db) if (each.connection, each.stream) == about]
        if not held:
            raise PartnerSyncError(
                f"No scan of {connection}/{stream} is held. Nothing was changed.",
                "Run `partner-sync status` to see what waits for a decision.",
            )
        scan, why = held[-1], held[-1].reason
        add_decision(db, session.decision("reject" if reject else "approve", scan.scan_id, reason))
        scans.set_status(db, scan.scan_id, status, reason)
    began = f"{scan.started_at:%Y-%m-%d %H:%M}"
    return f"{status.capitalize()} the scan of {connection}/{stream} of {began} ({why})."
