"""Evaluates every check of a home, and shows what analysts see now."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.app import format_numbers
from pipelines.app.session import AppSession
from pipelines.checks.catalogue import evaluate
from pipelines.checks.check import CheckResult
from pipelines.checks.context import CheckContext
from pipelines.checks.published import ListName, Published, read_published
from pipelines.core.errors import ExitCode, PartnerSyncError
from pipelines.core.finding import Finding, Severity
from pipelines.finance.books_state import why_outdated
from pipelines.metadata import runs
from pipelines.metadata.decisions import finished_erasures
from pipelines.metadata.findings import record_findings
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Run, Scan
from pipelines.warehouse.duckdb_file import Row

# `status` shows the newest; all of them are decisions in the metadata database.
MOST_ERASURES = 5


def run_checks(session: AppSession, published: Published | None = None) -> list[CheckResult]:
    """Evaluate every check over all connections; record what was found and what has cleared."""
    if published is None:
        published = current_version(session)
    now = session.clock.utc_now()
    with session.metadata.transaction() as db:
        results = evaluate(CheckContext(db, published, _lists(session), session.settings, now))
        record_findings(db, findings_of(results), now)
    return results


def findings_of(results: Sequence[CheckResult]) -> tuple[Finding, ...]:
    """Return everything that checks have found."""
    findings = list[Finding]()
    for result in results:
        findings += result.findings
    return tuple(findings)


def _lists(session: AppSession) -> tuple[ListName, ...]:
    """Return every list that a connection reads."""
    lists = list[ListName]()
    for connection, streams in session.lists().items():
        lists += [ListName(connection, stream.name) for stream in streams]
    return tuple(lists)


def current_version(session: AppSession) -> Published:
    """Return what the checks look at of the published version."""
    published = read_published(session.warehouse, session.settings.break_alert_amount)
    if published.version is None or published.problem or published.books_problem:
        return published
    try:
        return replace(published, books_age=why_outdated(session))
    except PartnerSyncError as error:
        return replace(published, books_problem=str(error))


def exit_code(version: object, findings: tuple[Finding, ...], *, is_clear: bool) -> ExitCode:
    """Return what a published version (None: nothing) and what was found mean for a command."""
    if version is None:
        return ExitCode.NOTHING_PUBLISHED
    needs_nobody = all(finding.severity is Severity.INFO for finding in findings)
    return ExitCode.DONE if is_clear and needs_nobody else ExitCode.NEEDS_ATTENTION


def status(session: AppSession) -> Row:
    """Evaluate the checks; return the state of a home. `version` None: nothing is published.

    `unknown` says why checks cannot be answered: only without it and without findings all is well.
    `formats` are the numbers that are written now, and that of the published version.
    """
    published = current_version(session)
    # A list that no connection reads any more is shown as long as the version holds it.
    lists = dict.fromkeys([*_lists(session), *published.loaded])
    results = run_checks(session, published)
    findings = findings_of(results)
    # One reason, such as a damaged version, can concern many checks.
    unknown = list(dict.fromkeys(result.reason for result in results if result.reason))
    code = exit_code(published.version, findings, is_clear=not unknown)
    with session.metadata.transaction() as db:
        list_rows = [_list_status(db, published, list_name) for list_name in lists]
        erasures = finished_erasures(db)[:MOST_ERASURES]
    return {
        "exit_code": int(code),
        "version": published.version and published.version.number,
        "file": str(session.home.link),
        "lists": list_rows,
        "findings": findings,
        "unknown": unknown,
        "checks": len(results),
        "erasures": erasures,
        "formats": {**format_numbers.written(), "published_version": published.format},
    }


def _list_status(db: Session, published: Published, list_name: ListName) -> Row:
    """Return what analysts see of a list (None: nothing), and the state of its newest scan."""
    newest_first = select(Scan).order_by(Scan.started_at.desc(), Scan.scan_id.desc())
    newest = db.scalar(newest_first.filter_by(**list_name._asdict()).limit(1))
    loaded = published.loaded.get(list_name)
    return {
        **list_name._asdict(),
        "rows": loaded and loaded.rows,
        "complete": loaded and loaded.complete,
        "as_of": loaded and loaded.ended_at,
        "last_scan": newest and _scan_state(db, newest),
        "last_scan_started_at": newest and newest.started_at,
    }


def _scan_state(db: Session, scan: Scan) -> str:
    """Return the status of a scan; an open one is being read, or its read was interrupted."""
    if scan.status != ScanStatus.OPEN:
        return scan.status
    run = db.get(Run, scan.run_id)
    return "being read" if run and runs.is_running(db, run) else "interrupted"


def recent_runs(session: AppSession, limit: int) -> list[Row]:
    """Return runs, newest first; `limit` 0 means all."""
    rows = []
    with session.metadata.transaction() as db:
        for run in runs.recent_runs(db, limit):
            outcome = run.outcome
            if outcome is None:
                outcome = "running" if runs.is_running(db, run) else "killed"
            rows.append(
                {
                    "run": run.run_id,
                    "connection": run.connection,
                    "trigger": run.trigger,
                    "started_at": run.started_at,
                    "ended_at": run.ended_at,
                    "requests": run.requests,
                    "rate_limited": run.rate_limited,
                    "outcome": outcome,
                    "message": run.message or "",
                }
            )
    return rows
