"""Decisions of people about scans that are held."""

from dataclasses import dataclass

from sqlalchemy import select

from pipelines.app.session import AppSession
from pipelines.core.clock import utc_now
from pipelines.core.errors import ScanNotFound
from pipelines.metadata import decisions, scans
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Decision, Scan


@dataclass(frozen=True)
class Verdict:
    """What a person decided about a held scan, and why."""

    person: str
    reason: str
    reject: bool = False


def decide_held_scan(session: AppSession, connection: str, stream: str, verdict: Verdict) -> str:
    """Approve or reject the held scan of a list; return what was decided, as a sentence.

    The decision is about this scan only; a later scan passes the same guards. Raises ScanNotFound.
    """
    with session.metadata.transaction() as db:
        held = db.scalars(
            select(Scan)
            .where(Scan.connection == connection, Scan.stream == stream)
            .where(Scan.status == ScanStatus.HELD)
        ).first()
        if held is None:
            raise ScanNotFound(
                f"No scan of {connection}/{stream} is held. Nothing was changed.",
                "Run `partner-sync status` to see what waits for a decision.",
            )
        kind = "reject" if verdict.reject else "approve"
        decision = Decision(
            decided_at=utc_now(session.clock),
            person=verdict.person,
            kind=kind,
            subject=held.scan_id,
            reason=verdict.reason,
        )
        decisions.add_decision(db, decision)
        status = ScanStatus.REJECTED if verdict.reject else ScanStatus.APPROVED
        why = held.reason
        scans.set_status(db, held.scan_id, status, verdict.reason)
        verb = "Rejected" if verdict.reject else "Approved"
        return f"{verb} the scan of {connection}/{stream} of {held.started_at:%Y-%m-%d} ({why})."
