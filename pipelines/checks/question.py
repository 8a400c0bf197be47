"""What a check is and what it answers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pipelines.checks.check import Finding, Severity
from pipelines.checks.context import CheckContext, ListName

LIST_ASSET: Final = "warehouse/{stream}"
VERSION_ASSET: Final = "published/warehouse"


class State(StrEnum):
    """What a check says. UNKNOWN: there is no data to judge by; never shown as passed.

    A check with findings of severity INFO only has passed.
    """

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Scope(StrEnum):
    """What a check is asked about: each list, each connection, or the warehouse as a whole."""

    LIST = "list"
    CONNECTION = "connection"
    WAREHOUSE = "warehouse"


class CannotKnow(Exception):
    """Raised by a check that has nothing to judge by; the text says what is missing."""


@dataclass(frozen=True)
class Check:
    """One check. `remedy` fixes what it finds; {connection} and {stream} stand for the subject.

    `find` gets the check itself and a ListName, whose `stream` is empty for a connection and which
    is empty for the warehouse. It raises CannotKnow.
    """

    code: str
    scope: Scope
    question: str
    severity: Severity
    remedy: str
    find: "Callable[[Check, CheckContext, ListName], Iterable[Finding]]"

    @property
    def asset(self) -> str:
        """The Dagster asset it belongs to; {stream} stands for the list."""
        return LIST_ASSET if self.scope is Scope.LIST else VERSION_ASSET

    def finding(self, about: ListName, message: str, *, blocks: bool = False) -> Finding:
        """Return a finding of this check."""
        return Finding(
            code=self.code,
            severity=self.severity,
            connection=about.connection,
            stream=about.stream,
            subject="",
            message=message,
            remedy=self.remedy.format(connection=about.connection, stream=about.stream),
            blocks=blocks,
        )


@dataclass(frozen=True)
class CheckResult:
    """What one check says of one subject. `reason` explains UNKNOWN."""

    code: str
    asset: str
    connection: str
    stream: str
    state: State
    findings: tuple[Finding, ...] = ()
    reason: str = ""
