"""Rows of `findings`: when each was first and last seen, and when it cleared."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

import msgspec
from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.core.finding import Finding, Severity
from pipelines.metadata.tables import FindingRow

MOST_SEVERE_FIRST = list(reversed(Severity))


@dataclass(frozen=True)
class Scope:
    """What was looked at: a finding in it that is not reported again has cleared. None: all."""

    codes: Collection[str] | None = None
    connection: str | None = None
    stream: str | None = None

    def includes(self, row: FindingRow) -> bool:
        """Return whether a finding would have been reported again."""
        return (
            (self.codes is None or row.code in self.codes)
            and self.connection in {None, row.connection}
            and self.stream in {None, row.stream}
        )


@dataclass(frozen=True)
class Changes:
    """Findings that were not open before, and those that have cleared now."""

    new: list[FindingRow]
    cleared: list[FindingRow]


def record_findings(
    session: Session, scope: Scope, findings: Iterable[Finding], now: datetime
) -> Changes:
    """Record what was found; open findings of the scope that were not found again are cleared."""
    reported = {_identity(finding): finding for finding in findings}
    before = {_identity(row): row for row in open_findings(session)}
    changes = Changes([], [])
    for identity, finding in reported.items():
        first_seen = before[identity].first_seen if identity in before else now
        values = msgspec.structs.asdict(finding)
        row = session.merge(FindingRow(**values, first_seen=first_seen, last_seen=now))
        if identity not in before:
            changes.new.append(row)
    for identity, row in before.items():
        if identity not in reported and scope.includes(row):
            row.cleared_at = now
            changes.cleared.append(row)
    session.flush()
    return changes


def open_findings(session: Session, connection: str | None = None) -> list[FindingRow]:
    """Return the findings that hold, most severe first, then oldest first."""
    query = select(FindingRow).where(FindingRow.cleared_at.is_(None))
    if connection is not None:
        query = query.where(FindingRow.connection == connection)
    rows = session.scalars(query.order_by(FindingRow.first_seen))
    return sorted(rows, key=lambda row: MOST_SEVERE_FIRST.index(Severity(row.severity)))


def _identity(finding: Finding | FindingRow) -> tuple[str, ...]:
    return (finding.code, finding.connection, finding.stream, finding.subject)
