"""What analysts see now, how fresh and complete it is, and what needs attention."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from pipelines.app.checkup import check_home
from pipelines.app.session import AppSession
from pipelines.checks.context import CheckContext, ListName
from pipelines.core.errors import ExitCode
from pipelines.core.finding import Finding, Severity
from pipelines.metadata import runs
from pipelines.metadata.tables import Scan


@dataclass(frozen=True)
class ListStatus:
    """One list of one connection: what analysts see of it (None: nothing), and its newest scan."""

    connection: str
    stream: str
    rows: int | None
    complete: bool | None
    as_of: datetime | None
    last_scan: str | None
    last_scan_started_at: datetime | None


@dataclass(frozen=True)
class Status:
    """The state of a home. `version` None: nothing is published.

    `unknown` says why checks cannot be answered. Only without findings and without unknown checks
    all is well.
    """

    version: int | None
    file: str
    lists: tuple[ListStatus, ...]
    findings: tuple[Finding, ...]
    unknown: tuple[str, ...]
    checks: int

    @property
    def exit_code(self) -> ExitCode:
        """What the state means for a command."""
        if self.version is None:
            return ExitCode.NOTHING_PUBLISHED
        needs_attention = any(each.severity is not Severity.INFO for each in self.findings)
        return ExitCode.NEEDS_ATTENTION if needs_attention or self.unknown else ExitCode.DONE


def status(session: AppSession) -> Status:
    """Return the state of a home; evaluates the checks."""
    checkup = check_home(session)
    version = checkup.context.published.version
    return Status(
        version=version.number if version else None,
        file=str(session.home.link),
        lists=tuple(_list_status(session, checkup.context, each) for each in checkup.context.lists),
        findings=checkup.findings,
        unknown=checkup.unknown,
        checks=len(checkup.results),
    )


def _list_status(session: AppSession, context: CheckContext, about: ListName) -> ListStatus:
    scans = context.published.loaded.get(about)
    loaded = scans[-1] if scans else None
    newest = select(Scan).where(Scan.connection == about.connection, Scan.stream == about.stream)
    with session.metadata.transaction() as db:
        last = db.scalars(newest.order_by(Scan.started_at.desc()).limit(1)).first()
    return ListStatus(
        connection=about.connection,
        stream=about.stream,
        rows=loaded.rows if loaded else None,
        complete=loaded.complete if loaded else None,
        as_of=loaded.ended_at if loaded else None,
        last_scan=last.status if last else None,
        last_scan_started_at=last.started_at if last else None,
    )


def recent_runs(session: AppSession, limit: int) -> list[dict[str, object]]:
    """Return runs, newest first; `limit` 0 means all."""
    with session.metadata.transaction() as db:
        return [
            {
                "run": run.run_id,
                "connection": run.connection,
                "trigger": run.trigger,
                "started_at": run.started_at,
                "ended_at": run.ended_at,
                "requests": run.requests,
                "rate_limited": run.rate_limited,
                "outcome": run.outcome or ("running" if runs.is_running(run) else "killed"),
                "message": run.message or "",
            }
            for run in runs.recent_runs(db, limit)
        ]
