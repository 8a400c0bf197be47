"""Every check of the pipeline. `sync`, `status` and Dagster's asset checks show the same list."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pipelines.checks import finders
from pipelines.checks.context import CannotKnow, CheckContext, ListName
from pipelines.core.finding import Finding, Severity


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


@dataclass(frozen=True)
class Check:
    """One check. `remedy` fixes what it finds; {connection} and {stream} stand for the subject.

    `find` gets a ListName, whose `stream` is empty for a connection and which is empty for the
    warehouse (see `finders`). `blocks`: data waits for a person while it fails.
    """

    code: str
    scope: Scope
    severity: Severity
    question: str
    remedy: str
    find: Callable[[CheckContext, ListName], str | list[Finding]]
    blocks: bool = False

    @property
    def asset(self) -> str:
        """The Dagster asset it belongs to; {stream} stands for the list."""
        return "warehouse/{stream}" if self.scope is Scope.LIST else "published/warehouse"


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


READ: Final = "partner-sync sync --connection {connection}"
READ_LIST: Final = f"{READ} --stream {{stream}}"
CHECKS: Final = (
    Check(
        "warehouse_unreadable",
        Scope.WAREHOUSE,
        Severity.ERROR,
        "Can analysts open the published version?",
        "partner-sync versions rollback",
        finders.unreadable_warehouse,
    ),
    Check(
        "version_rolled_back",
        Scope.WAREHOUSE,
        Severity.INFO,
        "Is the newest version the published one?",
        "partner-sync versions list",
        finders.rolled_back_version,
    ),
    Check(
        "run_failed",
        Scope.CONNECTION,
        Severity.ERROR,
        "Did the last sync of the connection run to its end?",
        READ,
        finders.failed_run,
    ),
    Check(
        "list_not_loaded",
        Scope.LIST,
        Severity.WARNING,
        "Does the published version hold the list?",
        READ_LIST,
        finders.list_not_loaded,
    ),
    Check(
        "list_partial",
        Scope.LIST,
        Severity.WARNING,
        "Is the newest published scan of the list complete?",
        READ_LIST,
        finders.partial_list,
    ),
    Check(
        "scan_held",
        Scope.LIST,
        Severity.WARNING,
        "Does no scan of the list wait for approval?",
        "partner-sync approve {connection} {stream}",
        finders.held_scan,
        blocks=True,
    ),
    Check(
        "scan_failed",
        Scope.LIST,
        Severity.ERROR,
        "Could the newest scan of the list be loaded?",
        READ_LIST,
        finders.failed_scan,
    ),
    Check(
        "scan_not_published",
        Scope.LIST,
        Severity.WARNING,
        "Is every scan of the list that needs no approval published?",
        "partner-sync versions build",
        finders.scan_not_published,
    ),
    Check(
        "records_quarantined",
        Scope.LIST,
        Severity.WARNING,
        "Is every record of the list in a table?",
        "Read quarantine.records, and ask the service to correct the records.",
        finders.quarantined_records,
    ),
    Check(
        "values_in_extra",
        Scope.LIST,
        Severity.WARNING,
        "Does every value of the list fit its column?",
        "Check with the service whether the field has another meaning now.",
        finders.values_in_extra,
    ),
    Check(
        "load_reported",
        Scope.LIST,
        Severity.WARNING,
        "Did the newest load of the list report nothing else that needs attention?",
        "Follow the message of the finding.",
        finders.reported_by_load,
    ),
    Check(
        "list_stale",
        Scope.LIST,
        Severity.WARNING,
        "Are the published rows of the list new enough?",
        READ_LIST,
        finders.stale_list,
    ),
)


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
        names = dict.fromkeys(each.connection for each in context.lists)
        yield from (ListName(name, "") for name in names)
    else:
        yield ListName("", "")


def _ask(check: Check, context: CheckContext, about: ListName) -> CheckResult:
    reason, findings = "", list[Finding]()
    try:
        findings = _find(check, context, about)
        failed = any(finding.severity is not Severity.INFO for finding in findings)
        state = State.FAILED if failed else State.PASSED
    except CannotKnow as error:
        state, reason = State.UNKNOWN, str(error)
    asset = check.asset.format(stream=about.stream)
    names = (about.connection, about.stream)
    return CheckResult(check.code, asset, *names, state, tuple(findings), reason)


def _find(check: Check, context: CheckContext, about: ListName) -> list[Finding]:
    found = check.find(context, about)
    if isinstance(found, list):
        return found
    remedy = check.remedy.format(connection=about.connection, stream=about.stream)
    texts = (about.connection, about.stream, "", found, remedy)
    return [Finding(check.code, check.severity, *texts, check.blocks)] if found else []
