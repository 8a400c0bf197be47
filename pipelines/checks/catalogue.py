"""Every check of the pipeline. `sync`, `status` and Dagster's asset checks show the same list."""

from collections.abc import Iterator
from typing import Final

from pipelines.checks import connections, lists, versions
from pipelines.checks.check import Finding, Severity
from pipelines.checks.context import CheckContext, ListName
from pipelines.checks.question import CannotKnow, Check, CheckResult, Scope, State

__all__ = ["CHECKS", "Check", "CheckResult", "Scope", "State", "evaluate"]

CHECKS: Final = (*versions.CHECKS, *connections.CHECKS, *lists.CHECKS)


def evaluate(context: CheckContext) -> list[CheckResult]:
    """Ask every check about each list, each connection or the warehouse."""
    return [
        _ask(check, context, subject)
        for check in CHECKS
        for subject in _subjects(check.scope, context)
    ]


def _subjects(scope: Scope, context: CheckContext) -> Iterator[ListName]:
    if scope is Scope.LIST:
        yield from context.lists
    elif scope is Scope.CONNECTION:
        yield from (ListName(name, "") for name in context.connections)
    else:
        yield ListName("", "")


def _ask(check: Check, context: CheckContext, subject: ListName) -> CheckResult:
    reason, findings = "", tuple[Finding, ...]()
    try:
        findings = tuple(check.find(check, context, subject))
        failed = any(finding.severity is not Severity.INFO for finding in findings)
        state = State.FAILED if failed else State.PASSED
    except CannotKnow as error:
        state, reason = State.UNKNOWN, str(error)
    return CheckResult(
        code=check.code,
        asset=check.asset.format(stream=subject.stream),
        connection=subject.connection,
        stream=subject.stream,
        state=state,
        findings=findings,
        reason=reason,
    )
