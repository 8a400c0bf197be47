"""Evaluates every check of a home, and shows what analysts see now."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.app import formats
from pipelines.app.session import AppSession
from pipelines.checks.catalogue import CheckResult, evaluate
from pipelines.checks.context import CheckContext
from pipelines.checks.published import ListName, Published, read_published
from pipelines.core.errors import ExitCode, PartnerSyncError
from pipelines.core.finding import Finding, Severity
from pipelines.finance.books import why_outdated
from pipelines.metadata import runs
from pipelines.metadata.decisions import finished_erasures
from pipelines.metadata.findings import record_findings
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Run, Scan
from pipelines.warehouse.duckdb_file import Row

MOST_ERASURES = 5  # that `status` shows, newest first
RUN_COLUMNS = ("connection", "trigger", "started_at", "ended_at", "requests", "rate_limited")


def run_checks(session: AppSession, published: Published | None = None) -> list[CheckResult]:
    """Evaluate every check over all connections; record what was found and what has cleared."""
    published, now = published or current_version(session), session.clock.utc_now()
    with session.metadata.transaction() as db:
        results = evaluate(CheckContext(db, published, _lists(session), session.settings, now))
        record_findings(db, findings_of(results), now)
    return results


def findings_of(results: Sequence[CheckResult]) -> tuple[Finding, ...]:
    """Return everything that checks have found."""
    return tuple(finding for result in results for finding in result.findings)


def _lists(session: AppSession) -> tuple[ListName, ...]:
    found = session.lists().items()
    return tuple(ListName(name, each.name) for name, has in found for each in has)


def current_version(session: AppSession) -> Published:
    """Return what the checks look at of the published version."""
    found = read_published(session.warehouse, session.settings.break_alert_amount)
    if found.version is None or found.problem or found.books_problem:
        return found
    try:
        return replace(found, books_age=why_outdated(session))
    except PartnerSyncError as error:
        return replace(found, books_problem=str(error))


def exit_code(version: object, findings: tuple[Finding, ...], *, is_clear: bool) -> ExitCode:
    """Return what a published version (None: nothing) and what was found mean for a command."""
    if version is None:
        return ExitCode.NOTHING_PUBLISHED
    is_clear &= all(each.severity is Severity.INFO for each in findings)
    return ExitCode.DONE if is_clear else ExitCode.NEEDS_ATTENTION


def status(session: AppSession) -> Row:
    """Evaluate the checks; return the state of a home. `version` None: nothing is published.

    `unknown` says why checks cannot be answered: only without it and without findings all is well.
    `formats` are the numbers that are written now, and that of the published version.
    """
    published, lists = current_version(session), dict.fromkeys(_lists(session))
    results = run_checks(session, published)
    version, findings = published.version, findings_of(results)
    unknown = list(dict.fromkeys(each.reason for each in results if each.reason))
    with session.metadata.transaction() as db:
        shown = [_list_status(db, published, each) for each in {**lists, **published.loaded}]
        erased = finished_erasures(db)[:MOST_ERASURES]
    return {
        "exit_code": int(exit_code(version, findings, is_clear=not unknown)),
        "version": version and version.number,
        "file": str(session.home.link),
        "lists": shown,
        "findings": findings,
        "unknown": unknown,
        "checks": len(results),
        "erasures": erased,
        "formats": {**formats.written(), "published_version": published.format},
    }


def _list_status(db: Session, published: Published, about: ListName) -> Row:
    """Return what analysts see of a list (None: nothing), and the state of its newest scan."""
    newest = select(Scan).order_by(Scan.started_at.desc(), Scan.scan_id.desc()).limit(1)
    last = db.scalar(newest.filter_by(**about._asdict()))
    loaded, state = published.loaded.get(about), last and last.status
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
