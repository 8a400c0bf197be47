"""Checks of each list: whether it was read, proven, loaded and published, and how long ago."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pipelines.checks.check import Finding, Severity
from pipelines.checks.context import CheckContext, ListName, LoadedScan
from pipelines.checks.question import CannotKnow, Check, Scope
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan

SYNC: Final = "partner-sync sync --connection {connection} --stream {stream}"
# Load findings that hold for more than one load; a check of its own looks at the tables.
LOOKED_AT: Final = frozenset({"records_quarantined", "values_in_extra", "scan_held"})


def _require_readable(context: CheckContext) -> None:
    if context.published.problem:
        raise CannotKnow(f"The published version cannot be read: {context.published.problem}")


def _last_loaded(context: CheckContext, about: ListName) -> LoadedScan:
    _require_readable(context)
    loaded = context.published.loaded.get(about)
    if not loaded:
        raise CannotKnow(f"No scan of {about} is published.")
    return loaded[-1]


def _newest_scan(context: CheckContext, about: ListName) -> Scan:
    scan = context.metadata.scans.get(about)
    if scan is None:
        raise CannotKnow(f"{about} was never read to its end.")
    return scan


def _seen(context: CheckContext, about: ListName) -> str:
    """Return what analysts see of a list meanwhile."""
    loaded = context.published.loaded.get(about)
    if not loaded:
        return "Analysts see no rows of it."
    return f"Analysts still see its rows of {loaded[-1].ended_at:%Y-%m-%d %H:%M} UTC."


def _never_loaded(check: Check, context: CheckContext, about: ListName) -> Iterator[Finding]:
    _require_readable(context)
    if not context.published.loaded.get(about):
        yield check.finding(about, f"No scan of {about} is published. Analysts see no rows of it.")


def _partial(check: Check, context: CheckContext, about: ListName) -> Iterator[Finding]:
    last = _last_loaded(context, about)
    if not last.complete:
        yield check.finding(about, f"{about.connection}/{last.sentence}")


def _held(check: Check, context: CheckContext, about: ListName) -> Iterator[Finding]:
    _newest_scan(context, about)
    if held := context.metadata.held.get(about):
        message = (
            f"The scan of {about} of {held.started_at:%Y-%m-%d %H:%M} UTC waits for approval: "
            f"{held.reason} {_seen(context, about)}"
        )
        yield check.finding(about, message, blocks=True)


def _failed(check: Check, context: CheckContext, about: ListName) -> Iterator[Finding]:
    scan = _newest_scan(context, about)
    if scan.status == ScanStatus.FAILED:
        message = (
            f"The scan of {about} of {scan.started_at:%Y-%m-%d %H:%M} UTC could not be loaded: "
            f"{scan.reason} {_seen(context, about)}"
        )
        yield check.finding(about, message)


def _waiting(check: Check, context: CheckContext, about: ListName) -> Iterator[Finding]:
    _require_readable(context)
    _newest_scan(context, about)
    if waiting := context.metadata.waiting.get(about):
        message = (
            f"The scan of {about} of {waiting.started_at:%Y-%m-%d %H:%M} UTC is read and not "
            f"published. {_seen(context, about)}"
        )
        yield check.finding(about, message)


def _quarantined(check: Check, context: CheckContext, about: ListName) -> Iterator[Finding]:
    _last_loaded(context, about)
    if records := context.published.quarantined.get(about):
        message = (
            f"{records:,} records of {about} are in quarantine.records, with the reason. Rows with "
            "their keys keep the version that was loaded before; sums may lack them."
        )
        yield check.finding(about, message)


def _not_fitting(check: Check, context: CheckContext, about: ListName) -> Iterator[Finding]:
    _last_loaded(context, about)
    if rows := context.published.not_fitting.get(about):
        message = (
            f"{rows:,} rows of {about} have values that fit no column. They are in column `_extra` "
            "as they were sent; their own column is NULL there."
        )
        yield check.finding(about, message)


def _said_by_load(check: Check, context: CheckContext, about: ListName) -> Iterator[Finding]:
    del check  # these findings have codes and remedies of their own
    last = _last_loaded(context, about)
    said = context.published.findings.get(last.scan_id, [])
    yield from (finding for finding in said if finding.code not in LOOKED_AT)


def _stale(check: Check, context: CheckContext, about: ListName) -> Iterator[Finding]:
    _last_loaded(context, about)
    complete = [scan for scan in context.published.loaded[about] if scan.complete]
    if not complete:
        raise CannotKnow(f"No scan of {about} is complete.")
    ended_at = complete[-1].ended_at
    age = context.now - ended_at
    if age > timedelta(hours=context.stale_after_hours):
        message = (
            f"The newest complete scan of {about} ended at {ended_at:%Y-%m-%d %H:%M} UTC, "
            f"{age / timedelta(hours=1):,.0f} hours ago. Analysts see the rows of that time."
        )
        yield check.finding(about, message)


CHECKS = (
    Check(
        code="list_not_loaded",
        scope=Scope.LIST,
        question="Does the published version hold the list?",
        severity=Severity.WARNING,
        remedy=SYNC,
        find=_never_loaded,
    ),
    Check(
        code="list_partial",
        scope=Scope.LIST,
        question="Is the newest published scan of the list complete?",
        severity=Severity.WARNING,
        remedy=SYNC,
        find=_partial,
    ),
    Check(
        code="scan_held",
        scope=Scope.LIST,
        question="Does no scan of the list wait for approval?",
        severity=Severity.WARNING,
        remedy="partner-sync approve {connection} {stream}",
        find=_held,
    ),
    Check(
        code="scan_failed",
        scope=Scope.LIST,
        question="Could the newest scan of the list be loaded?",
        severity=Severity.ERROR,
        remedy=SYNC,
        find=_failed,
    ),
    Check(
        code="scan_not_published",
        scope=Scope.LIST,
        question="Is every scan of the list that needs no approval published?",
        severity=Severity.WARNING,
        remedy="partner-sync versions build",
        find=_waiting,
    ),
    Check(
        code="records_quarantined",
        scope=Scope.LIST,
        question="Is every record of the list in a table?",
        severity=Severity.WARNING,
        remedy="Read quarantine.records, and ask the service to correct the records.",
        find=_quarantined,
    ),
    Check(
        code="values_in_extra",
        scope=Scope.LIST,
        question="Does every value of the list fit its column?",
        severity=Severity.WARNING,
        remedy="Check with the service whether the field has another meaning now.",
        find=_not_fitting,
    ),
    Check(
        code="load_reported",
        scope=Scope.LIST,
        question="Did the newest load of the list report nothing else that needs attention?",
        severity=Severity.WARNING,
        remedy="Follow the message of the finding.",
        find=_said_by_load,
    ),
    Check(
        code="list_stale",
        scope=Scope.LIST,
        question="Are the published rows of the list new enough?",
        severity=Severity.WARNING,
        remedy=SYNC,
        find=_stale,
    ),
)
