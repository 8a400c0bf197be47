"""Decisions of people about scans that are held."""

from dataclasses import dataclass

from pipelines.app.session import AppSession
from pipelines.core.clock import utc_now
from pipelines.core.errors import ConfigurationError, ScanNotFound
from pipelines.metadata import decisions, scans
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Decision


@dataclass(frozen=True)
class Verdict:
    """What a person decided, and why."""

    person: str
    reason: str
    reject: bool = False


def decide_held_scan(session: AppSession, connection: str, stream: str, verdict: Verdict) -> str:
    """Approve or reject the held scan of a list; return what was decided, as a sentence.

    The decision is about this scan only; a later scan passes the same guards. Raises ScanNotFound,
    and ConfigurationError for a name that is not configured.
    """
    known = session.settings.streams_of(session.settings.connection(connection))
    if stream not in {each.name for each in known}:
        possible = ", ".join(each.name for each in known) or "none"
        raise ConfigurationError(
            f"Connection `{connection}` has no stream `{stream}`. Possible streams: {possible}."
        )
    with session.metadata.transaction() as db:
        held = [
            scan
            for scan in scans.held_scans(db)
            if (scan.connection, scan.stream) == (connection, stream)
        ]
        if not held:
            raise ScanNotFound(
                f"No scan of {connection}/{stream} is held. Nothing was changed.",
                "Run `partner-sync status` to see what waits for a decision.",
            )
        scan = held[-1]
        decision = Decision(
            decided_at=utc_now(session.clock),
            person=verdict.person,
            kind="reject" if verdict.reject else "approve",
            subject=scan.scan_id,
            reason=verdict.reason,
        )
        decisions.add_decision(db, decision)
        why = scan.reason
        status = ScanStatus.REJECTED if verdict.reject else ScanStatus.APPROVED
        scans.set_status(db, scan.scan_id, status, verdict.reason)
    verb = "Rejected" if verdict.reject else "Approved"
    return f"{verb} the scan of {connection}/{stream} of {scan.started_at:%Y-%m-%d %H:%M} ({why})."
