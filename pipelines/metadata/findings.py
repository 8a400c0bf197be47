"""Rows of `findings`: when each was first and last seen, and when it cleared."""

from collections.abc import Iterable
from datetime import datetime

import msgspec
from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.core.finding import Finding
from pipelines.metadata.tables import FindingRow


def record_findings(session: Session, findings: Iterable[Finding], now: datetime) -> None:
    """Record everything that was found; an open finding that is not among it has cleared."""
    reported = {_identity(finding): finding for finding in findings}
    first_seen = {}
    for row in session.scalars(select(FindingRow).where(FindingRow.cleared_at.is_(None))):
        first_seen[_identity(row)] = row.first_seen
        row.cleared_at = now
    for identity, finding in reported.items():
        values = {**msgspec.structs.asdict(finding), "last_seen": now, "cleared_at": None}
        session.merge(FindingRow(**values, first_seen=first_seen.get(identity, now)))


def _identity(finding: Finding | FindingRow) -> tuple[str, ...]:
    return (finding.code, finding.connection, finding.stream, finding.subject)
