"""Checks of the runs of a connection."""

from collections.abc import Iterator
from typing import Final

from pipelines.checks.check import Finding, Severity
from pipelines.checks.context import CheckContext, ListName
from pipelines.checks.question import CannotKnow, Check, Scope
from pipelines.metadata.runs import Outcome, is_running
from pipelines.metadata.tables import Run

KILLED: Final = "Its process was killed."


def _last_run(context: CheckContext, about: ListName) -> Run:
    """Return the newest run that is over."""
    for run in context.metadata.runs:
        if run.connection == about.connection and not is_running(run):
            return run
    raise CannotKnow(f"No sync of `{about.connection}` has ended yet.")


def _failed(check: Check, context: CheckContext, about: ListName) -> Iterator[Finding]:
    run = _last_run(context, about)
    if run.outcome == Outcome.FAILED:
        yield check.finding(about, _sentence("failed", run, context))


def _interrupted(check: Check, context: CheckContext, about: ListName) -> Iterator[Finding]:
    run = _last_run(context, about)
    if run.outcome in {Outcome.INTERRUPTED, None}:
        yield check.finding(about, _sentence("was interrupted", run, context))


def _sentence(what: str, run: Run, context: CheckContext) -> str:
    version = context.published.version
    seen = f"Analysts still see version {version.number}." if version else "Nothing is published."
    return (
        f"The sync of `{run.connection}` that began at {run.started_at:%Y-%m-%d %H:%M} UTC {what}. "
        f"{run.message or KILLED} {seen}"
    )


CHECKS = (
    Check(
        code="run_failed",
        scope=Scope.CONNECTION,
        question="Did the last sync of the connection succeed?",
        severity=Severity.ERROR,
        remedy="partner-sync sync --connection {connection}",
        find=_failed,
    ),
    Check(
        code="run_interrupted",
        scope=Scope.CONNECTION,
        question="Did the last sync of the connection run to its end?",
        severity=Severity.WARNING,
        remedy="partner-sync sync --connection {connection}",
        find=_interrupted,
    ),
)
