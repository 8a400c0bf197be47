"""What analysts see now, how fresh and complete it is, and what needs attention."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from pipelines.app.checkup import evaluate_checks
from pipelines.app.session import AppSession
from pipelines.checks.check import Finding
from pipelines.metadata.tables import Run, Scan

LOADED = """
SELECT
    loads.connection,
    loads.stream,
    loads.scan_id
FROM meta.loads AS loads
QUALIFY row_number() OVER (
    PARTITION BY loads.connection, loads.stream ORDER BY loads.valid_time DESC
) = 1
"""


@dataclass(frozen=True)
class ListStatus:
    """One list of one connection. `published_*` is what analysts see, `last_*` the newest scan."""

    connection: str
    stream: str
    published_rows: int | None
    published_as_of: datetime | None
    published_complete: bool | None
    last_scan: str


@dataclass(frozen=True)
class Status:
    """The state of a home. `version` None: nothing is published."""

    version: int | None
    link: str
    lists: tuple[ListStatus, ...]
    findings: tuple[Finding, ...]


def status(session: AppSession) -> Status:
    """Return the state of a home; evaluates the checks."""
    findings = evaluate_checks(session)
    published = session.warehouse.published()
    loaded: dict[tuple[str, str], str] = {}
    if published is not None:
        with session.warehouse.open(published.number) as db:
            loaded = {(row[0], row[1]): row[2] for row in db.sql(LOADED).fetchall()}
    lists = tuple(
        _list_status(session, name, stream.name, loaded.get((name, stream.name)))
        for name, connection in session.settings.connections().items()
        for stream in session.settings.streams_of(connection)
    )
    number = published.number if published else None
    return Status(number, str(session.home.link), lists, findings)


def _list_status(
    session: AppSession, connection: str, stream: str, scan_id: str | None
) -> ListStatus:
    with session.metadata.transaction() as db:
        loaded = db.get(Scan, scan_id) if scan_id else None
        last = db.scalars(
            select(Scan)
            .where(Scan.connection == connection, Scan.stream == stream)
            .order_by(Scan.started_at.desc())
            .limit(1)
        ).first()
        return ListStatus(
            connection=connection,
            stream=stream,
            published_rows=loaded.rows if loaded else None,
            published_as_of=loaded.ended_at if loaded else None,
            published_complete=loaded.complete if loaded else None,
            last_scan=f"{last.status} {last.started_at:%Y-%m-%d %H:%M} UTC" if last else "never",
        )


def recent_runs(session: AppSession, limit: int) -> list[dict[str, object]]:
    """Return runs, newest first; `limit` 0 means all."""
    with session.metadata.transaction() as db:
        query = select(Run).order_by(Run.started_at.desc())
        return [
            {
                "run": run.run_id[:8],
                "connection": run.connection,
                "trigger": run.trigger,
                "started_at": run.started_at,
                "ended_at": run.ended_at,
                "requests": run.requests,
                "429s": run.rate_limited,
                "outcome": run.outcome or "running",
                "message": run.message or "",
            }
            for run in db.scalars(query.limit(limit) if limit else query)
        ]
