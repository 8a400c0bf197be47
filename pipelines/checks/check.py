"""Here: what a check is, and what it says.

A check is a function. It yields what it finds, and raises CannotKnow where there is nothing to
judge by. Not here: which checks there are, and how all of them are evaluated (catalogue).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal

from msgspec import structs

from pipelines.checks.context import CannotKnow, CheckContext
from pipelines.checks.published import ListName
from pipelines.core.finding import Finding, Severity

Problem = str | dict[str, Any] | Finding
"""What a check yields: a message; members of a finding that are not as usual; or all of it."""
CheckFunction = Callable[[CheckContext, ListName], Iterable[Problem]]
MINUTE: Final = "%Y-%m-%d %H:%M"  # times in messages
Scope = Literal["list", "connection", "warehouse"]  # what a check is asked about


class State(StrEnum):
    """What a check says. UNKNOWN: there is no data to judge by; never shown as passed."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class CheckResult:
    """What a check says of its subject. `reason` explains UNKNOWN."""

    check: "Check"
    about: ListName
    findings: tuple[Finding, ...] = ()
    reason: str = ""

    @property
    def state(self) -> State:
        """The state; findings of severity INFO do not fail a check."""
        if self.reason:
            return State.UNKNOWN
        has_failed = any(finding.severity is not Severity.INFO for finding in self.findings)
        return State.FAILED if has_failed else State.PASSED


@dataclass
class Check:
    """One check. `remedy` fixes what it finds; `blocks`: data waits for a person while it fails.

    The stream of its subject is empty for a connection; both names are for the warehouse.
    """

    remedy: str
    severity: Severity = Severity.WARNING
    scope: Scope = "list"
    blocks: bool = False
    code: str = field(init=False)
    question: str = field(init=False)
    find: CheckFunction = field(init=False)

    def __call__(self, function: CheckFunction) -> "Check":
        """Return the check of a function: its name is the code, its docstring the question."""
        self.code = function.__name__
        self.question = function.__doc__ or ""
        self.find = function
        return self

    def ask(self, context: CheckContext, about: ListName) -> CheckResult:
        """Return what the check says of one subject."""
        remedy = self.remedy.format(**about._asdict())
        usual = Finding(
            code=self.code,
            severity=self.severity,
            connection=about.connection,
            stream=about.stream,
            subject="",
            message="",
            remedy=remedy,
            blocks=self.blocks,
        )
        findings = list[Finding]()
        try:
            for problem in self.find(context, about):
                if isinstance(problem, str):
                    findings.append(structs.replace(usual, message=problem))
                elif isinstance(problem, dict):
                    findings.append(structs.replace(usual, **problem))
                else:
                    findings.append(problem)
        except CannotKnow as error:
            return CheckResult(self, about, reason=str(error))
        return CheckResult(self, about, tuple(findings))
