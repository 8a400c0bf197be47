"""What a check is, what it says, and how all of them are evaluated."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal

from msgspec import structs

from pipelines.checks.context import CannotKnow, CheckContext, ListName
from pipelines.core.finding import Finding, Severity

Found = str | dict[str, Any] | Finding  # a message; what a finding has of its own; or all of it
Find = Callable[[CheckContext, ListName], Iterable[Found]]
Scope = Literal["list", "connection", "warehouse"]  # what a check is asked about
CHECKS: Final[list["Check"]] = []


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
        failed = any(each.severity is not Severity.INFO for each in self.findings)
        return State.FAILED if failed else State.PASSED


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
    find: Find = field(init=False)

    def __call__(self, find: Find) -> Find:
        """Add a function to the catalogue."""
        self.code, self.question, self.find = find.__name__, find.__doc__ or "", find
        CHECKS.append(self)
        return find

    def ask(self, context: CheckContext, about: ListName) -> CheckResult:
        """Return what the check says of one subject."""
        remedy = self.remedy.format(**about._asdict())
        usual = Finding(self.code, self.severity, *about, "", "", remedy, self.blocks)
        findings = list[Finding]()
        try:
            for each in self.find(context, about):
                own = {"message": each} if isinstance(each, str) else each
                findings.append(structs.replace(usual, **own) if isinstance(own, dict) else own)
        except CannotKnow as error:
            return CheckResult(self, about, reason=str(error))
        return CheckResult(self, about, tuple(findings))


def evaluate(context: CheckContext) -> list[CheckResult]:
    """Ask every check about each list, each connection or the warehouse."""
    subjects: dict[Scope, Sequence[ListName]] = {
        "list": context.lists,
        "connection": sorted({ListName(each.connection, "") for each in context.lists}),
        "warehouse": [ListName("", "")],
    }
    return [check.ask(context, about) for check in CHECKS for about in subjects[check.scope]]
