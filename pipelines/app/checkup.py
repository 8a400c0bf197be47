"""Evaluates every check of a home, and shows what analysts see now."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.app.session import AppSession
from pipelines.checks.catalogue import CheckResult, evaluate
from pipelines.checks.context import CheckContext, Limits, ListName, read_context
from pipelines.core.clock import utc_now
from pipelines.core.errors import ExitCode
from pipelines.core.finding import Finding, Severity
from pipelines.metadata import runs
from pipelines.metadata.findings import record_findings
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Run, Scan

RUN_COLUMNS = ("connection", "trigger", "started_at", "ended_at", "requests", "rate_limited")
Row = dict[str, Any]


def run_checks(session: AppSession, context: CheckContext | None = None) -> list[CheckResult]:
    """Evaluate every check over all connections; record what was found and what has cleared."""
    results = evaluate(context or current_context(session))
    with session.metadata.transaction() as db:
        record_findings(db, findings_of(results), utc_now(session.clock))
    return results


def findings_of(results: list[CheckResult]) -> tuple[Finding, ...]:
    """Return everything that checks have found."""
    return tuple(finding for result in results for finding in result.findings)


def current_context(session: AppSession) -> CheckContext:
    """Return what the checks look at, as it is now."""
    lists = [ListName(name, each.name) for name, has in session.lists().items() for each in has]
    limits = Limits(session.settings.stale_after_hours, session.settings.break_alert_amount or None)
    now = utc_now(session.clock)
    return read_context(session.warehouse, session.metadata, lists, now, limits)


def exit_code(version: object, findings: tuple[Finding, ...], *, is_clear: bool) -> ExitCode:
    """Return what a published version (None: nothing) and what was found mean for a command."""
    if version is None:
        return ExitCode.NOTHING_PUBLISHED
    is_clear &= all(each.severity is Severity.INFO for each in findings)
    return ExitCode.DONE if is_clear else ExitCode.NEEDS_ATTENTION


def status(session: AppSession) -> Row:
    """Evaluate the checks; return the state of a home. `version` None: nothing is published.

    `unknown` says why checks cannot be answered: only without it and without findings all is well.
    """
    context = current_context(session)
    results = run_checks(session, context)
    version, findings = context.published.version, findings_of(results)
    unknown = list(dict.fromkeys(each.reason for each in results if each.reason))
    with session.metadata.transaction() as db:
        lists = [_list_status(db, context, each) for each in context.lists]
    return {
        "exit_code": int(exit_code(version, findings, is_clear=not unknown)),
        "version": version and version.number,
        "file": str(session.home.link),
        "lists": lists,
        "findings": findings,
        "unknown": unknown,
        "checks": len(results),
    }


def _list_status(db: Session, context: CheckContext, about: ListName) -> Row:
    """Return what analysts see of a list (None: nothing), and the state of its newest scan."""
    newest = select(Scan).order_by(Scan.started_at.desc(), Scan.scan_id.desc()).limit(1)
    last = db.scalar(newest.filter_by(**about._asdict()))
    loaded, state = context.published.loaded.get(about), last and last.status
    if last and last.status == ScanStatus.OPEN:
        run = db.get(Run, last.run_id)
        state = "being read" if run and runs.is_running(run) else "interrupted"
    return {
        **about._asdict(),
        "rows": loaded and loaded.rows,
        "complete": loaded and loaded.complete,
        "as_of": loaded and loaded.ended_at,
        "last_scan": state,
        "last_scan_started_at": last and last.started_at,
    }


def recent_runs(session: AppSession, limit: int) -> list[Row]:
    """Return runs, newest first; `limit` 0 means all."""
    with session.metadata.transaction() as db:
        return [
            {"run": run.run_id}
            | {name: getattr(run, name) for name in RUN_COLUMNS}
            | {"outcome": run.outcome or ("running" if runs.is_running(run) else "killed")}
            | {"message": run.message or ""}
            for run in runs.recent_runs(db, limit)
        ]
