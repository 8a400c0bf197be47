"""Evaluates every check of a home and keeps its findings."""

from pipelines.app.session import AppSession
from pipelines.checks.catalogue import CheckResult, evaluate
from pipelines.checks.check import Finding
from pipelines.checks.context import Clocks, ListName, read_context
from pipelines.core.clock import utc_now
from pipelines.metadata.findings import Scope, record_findings


def run_checks(session: AppSession) -> list[CheckResult]:
    """Evaluate every check over all connections; record what was found and what has cleared."""
    settings, now = session.settings, utc_now(session.clock)
    lists = [
        ListName(name, stream.name)
        for name, connection in settings.connections().items()
        for stream in settings.streams_of(connection)
    ]
    clocks = Clocks(now, settings.stale_after_hours)
    context = read_context(session.warehouse, session.metadata, lists, clocks)
    results = evaluate(context)
    with session.metadata.transaction() as db:
        record_findings(db, Scope(), [each for one in results for each in one.findings], now)
    return results


def evaluate_checks(session: AppSession) -> tuple[Finding, ...]:
    """Evaluate every check; return the findings."""
    return tuple(finding for result in run_checks(session) for finding in result.findings)
