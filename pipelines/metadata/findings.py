"""Rows of `findings`: when each was first and last seen, and when it cleared."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.metadata.tables import FindingRow

SEVERITIES = ("error", "warning", "info")
IDENTITY = ("code", "connection", "stream", "subject")
CONTENT = ("severity", "message", "remedy", "blocks")


class Reported(Protocol):
    """A finding as checks report it (checks/check.py, which lies above this layer)."""

    @property
    def code(self) -> str:
        """Its kind."""

    @property
    def connection(self) -> str:
        """The connection, or empty."""

    @property
    def stream(self) -> str:
        """The stream, or empty."""

    @property
    def subject(self) -> str:
        """What exactly it is about, or empty."""

    @property
    def severity(self) -> str:
        """How urgent it is."""

    @property
    def message(self) -> str:
        """What happened and what it means for the data."""

    @property
    def remedy(self) -> str:
        """The command that fixes it."""

    @property
    def blocks(self) -> bool:
        """Whether data waits for a person."""


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
    session: Session, scope: Scope, findings: Iterable[Reported], now: datetime
) -> Changes:
    """Record what was found; open findings of the scope that were not found again are cleared."""
    reported = {_identity(finding): finding for finding in findings}
    new = [
        row
        for identity, finding in reported.items()
        if (row := _record(session, identity, finding, now)).first_seen == now
    ]
    cleared = [
        row
        for row in open_findings(session)
        if scope.includes(row) and _identity(row) not in reported
    ]
    for row in cleared:
        row.cleared_at = now
    session.flush()
    return Changes(new, cleared)


def open_findings(session: Session, connection: str | None = None) -> list[FindingRow]:
    """Return the findings that hold, most severe first, then oldest first."""
    query = select(FindingRow).where(FindingRow.cleared_at.is_(None))
    if connection is not None:
        query = query.where(FindingRow.connection == connection)
    rows = session.scalars(query.order_by(FindingRow.first_seen))
    return sorted(rows, key=lambda row: SEVERITIES.index(row.severity))


def _identity(finding: Reported) -> tuple[str, ...]:
    return (finding.code, finding.connection, finding.stream, finding.subject)


def _record(
    session: Session, identity: tuple[str, ...], finding: Reported, now: datetime
) -> FindingRow:
    """Add a finding, open it again, or update it while it is open."""
    content = {name: getattr(finding, name) for name in CONTENT}
    row = session.get(FindingRow, identity)
    if row is None:
        values = dict(zip(IDENTITY, identity, strict=True)) | content
        row = FindingRow(**values, first_seen=now, last_seen=now)
        session.add(row)
        return row
    for name, value in content.items():
        setattr(row, name, value)
    if row.cleared_at is not None:
        row.first_seen, row.cleared_at = now, None
    row.last_seen = now
    return row
