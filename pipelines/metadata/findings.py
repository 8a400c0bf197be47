"""Rows of `findings`: when each was first and last seen, and when it cleared."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec.structs import asdict
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from pipelines.core.finding import Finding, Severity
from pipelines.metadata.tables import FindingRow, Notification


def record_findings(session: Session, findings: Iterable[Finding], now: datetime) -> None:
    """Record everything that was found; an open finding that is not among it has cleared."""
    known = {_identity(row): row for row in session.scalars(select(FindingRow))}
    reported = {_identity(finding): finding for finding in findings}
    for identity, known_row in known.items():
        if known_row.cleared_at is None and identity not in reported:
            known_row.cleared_at = now
    for identity, finding in reported.items():
        members = asdict(finding)
        row = known.get(identity)
        if row is None:
            row = FindingRow(**members, first_seen=now, last_seen=now)
            session.add(row)
        if row.cleared_at is not None:  # it is here again
            row.first_seen = now
            row.cleared_at = None
        row.last_seen = now
        for name, value in members.items():
            setattr(row, name, value)


def due_findings(
    session: Session, now: datetime, repeat: timedelta
) -> Iterator[tuple[FindingRow, str]]:
    """Yield what people should be told of: new findings, old ones again, cleared ones."""
    for row in session.scalars(select(FindingRow).order_by(FindingRow.first_seen)):
        if row.cleared_at is not None and row.notified_at is not None:
            yield row, "cleared"
        elif row.cleared_at is None and row.severity != Severity.INFO:
            if row.notified_at is None:
                yield row, "new"
            elif now - row.notified_at >= repeat:
                yield row, "still"


def open_severities(session: Session) -> list[str]:
    """Return the severity of every open finding that needs attention."""
    still_open = select(FindingRow.severity).where(FindingRow.cleared_at.is_(None))
    return list(session.scalars(still_open.where(FindingRow.severity != Severity.INFO)))


def last_notifications(session: Session) -> list[Notification]:
    """Return the last message to each channel."""
    newest = select(func.max(Notification.number)).group_by(Notification.channel)
    return list(session.scalars(select(Notification).where(Notification.number.in_(newest))))


def _identity(finding: Finding | FindingRow) -> tuple[str, ...]:
    return (finding.code, finding.connection, finding.stream, finding.subject)
