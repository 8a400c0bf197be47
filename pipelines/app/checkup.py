"""Evaluates every check of a home and keeps its findings."""

from dataclasses import dataclass

from pipelines.app.session import AppSession
from pipelines.checks.catalogue import CheckResult, State, evaluate
from pipelines.checks.context import CheckContext, ListName, read_context
from pipelines.core.clock import utc_now
from pipelines.core.finding import Finding
from pipelines.metadata.findings import Scope, record_findings


@dataclass(frozen=True)
class Checkup:
    """What the checks looked at, and what each of them says."""

    context: CheckContext
    results: tuple[CheckResult, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all checks."""
        return tuple(finding for result in self.results for finding in result.findings)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Why checks cannot be answered, each reason once."""
        unknown = (result for result in self.results if result.state is State.UNKNOWN)
        return tuple(dict.fromkeys(result.reason for result in unknown))


def check_home(session: AppSession) -> Checkup:
    """Evaluate every check over all connections; record what was found and what has cleared."""
    settings, now = session.settings, utc_now(session.clock)
    lists = [
        ListName(name, stream.name)
        for name, connection in settings.connections().items()
        for stream in settings.streams_of(connection)
    ]
    stores = (session.warehouse, session.metadata)
    context = read_context(*stores, lists, now, settings.stale_after_hours)
    checkup = Checkup(context, tuple(evaluate(context)))
    with session.metadata.transaction() as db:
        record_findings(db, Scope(), checkup.findings, now)
    return checkup


def run_checks(session: AppSession) -> list[CheckResult]:
    """Evaluate every check; return what each of them says."""
    return list(check_home(session).results)


def evaluate_checks(session: AppSession) -> tuple[Finding, ...]:
    """Evaluate every check; return the findings."""
    return check_home(session).findings
