"""What each check looks for, in what was read once.

A finder returns a message, empty where all is well, or the findings that a load wrote. It raises
CannotKnow where there is nothing to judge by.
"""

from datetime import timedelta
from typing import Final

from pipelines.checks.context import CannotKnow, CheckContext, ListName
from pipelines.core.finding import Finding
from pipelines.metadata.runs import Outcome, is_running
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan

# A check of its own looks for these in the tables: they hold for longer than one load.
LOOKED_FOR: Final = frozenset({"records_quarantined", "values_in_extra", "scan_held"})
KILLED: Final = "Its process was killed."


def unreadable_warehouse(context: CheckContext, _about: ListName) -> str:
    """Find a published version that analysts cannot open."""
    if context.published.problem:
        return f"Analysts cannot read the warehouse. {context.published.problem}"
    if context.published.version is None and not context.metadata.versions:
        raise CannotKnow("Nothing is published yet.")
    if context.published.version is None:
        return "The symlink of the warehouse is gone. Analysts find no file; versions are kept."
    return ""


def rolled_back_version(context: CheckContext, _about: ListName) -> str:
    """Find versions that are newer than the published one."""
    version = context.published.version
    if version is None:
        raise CannotKnow("Nothing is published yet.")
    newer = [str(number) for number in context.metadata.versions if number > version.number]
    if not newer:
        return ""
    return (
        f"Analysts see version {version.number}, which was published again. Newer versions exist: "
        f"{', '.join(newer)}."
    )


def failed_run(context: CheckContext, about: ListName) -> str:
    """Find a sync that failed or was interrupted, if it is the last one that is over."""
    over = (run for run in context.metadata.runs if run.connection == about.connection)
    run = next((run for run in over if not is_running(run)), None)
    if run is None:
        raise CannotKnow(f"No sync of `{about.connection}` has ended yet.")
    if run.outcome in {Outcome.COMPLETE, Outcome.PARTIAL}:
        return ""
    version = context.published.version
    return (
        f"The sync of `{run.connection}` that began at {run.started_at:%Y-%m-%d %H:%M} UTC "
        f"{'failed' if run.outcome == Outcome.FAILED else 'was interrupted'}. "
        f"{run.message or KILLED} "
        f"{f'Analysts still see version {version.number}.' if version else 'Nothing is published.'}"
    )


def list_not_loaded(context: CheckContext, about: ListName) -> str:
    """Find a list that the published version does not hold."""
    if context.loads(about):
        return ""
    return f"No scan of {about} is published. Analysts see no rows of it."


def partial_list(context: CheckContext, about: ListName) -> str:
    """Find a list whose newest published scan is not complete."""
    last = context.last_load(about)
    return "" if last.complete else f"{about.connection}/{last.sentence}"


def held_scan(context: CheckContext, about: ListName) -> str:
    """Find a scan that waits for approval."""
    context.newest_scan(about)
    held = context.metadata.held.get(about)
    return _about_scan(context, about, held, f"waits for approval: {held.reason}") if held else ""


def failed_scan(context: CheckContext, about: ListName) -> str:
    """Find a newest scan that a build could not load."""
    scan = context.newest_scan(about)
    if scan.status != ScanStatus.FAILED:
        return ""
    return _about_scan(context, about, scan, f"could not be loaded: {scan.reason}") + (
        " If its file is restored, `partner-sync versions rebuild` loads it."
    )


def scan_not_published(context: CheckContext, about: ListName) -> str:
    """Find a scan that only waits for a build."""
    context.loads(about)
    context.newest_scan(about)
    waiting = context.metadata.waiting.get(about)
    return _about_scan(context, about, waiting, "is read and not published.") if waiting else ""


def quarantined_records(context: CheckContext, about: ListName) -> str:
    """Find records that no table holds."""
    context.last_load(about)
    records = context.published.quarantined.get(about)
    if not records:
        return ""
    return (
        f"{records:,} records of {about} are in quarantine.records, with the reason. Rows with "
        "their keys keep the version that was loaded before; sums may lack them."
    )


def values_in_extra(context: CheckContext, about: ListName) -> str:
    """Find current rows with values that fit no column."""
    context.last_load(about)
    rows = context.published.not_fitting.get(about)
    if not rows:
        return ""
    return (
        f"{rows:,} rows of {about} have values that fit no column. They are in column `_extra` as "
        "they were sent; their own column is NULL there."
    )


def reported_by_load(context: CheckContext, about: ListName) -> list[Finding]:
    """Return what the newest load wrote, with codes and remedies of its own."""
    written = context.published.findings.get(context.last_load(about).scan_id, [])
    return [finding for finding in written if finding.code not in LOOKED_FOR]


def stale_list(context: CheckContext, about: ListName) -> str:
    """Find a list whose newest complete scan is too old."""
    context.last_load(about)
    complete = [load.ended_at for load in context.loads(about) if load.complete]
    if not complete:
        raise CannotKnow(f"No scan of {about} is complete.")
    age = context.now - complete[-1]
    if age <= timedelta(hours=context.stale_after_hours):
        return ""
    return (
        f"The newest complete scan of {about} ended at {complete[-1]:%Y-%m-%d %H:%M} UTC, "
        f"{age / timedelta(hours=1):,.0f} hours ago. Analysts see the rows of that time."
    )


def _about_scan(context: CheckContext, about: ListName, scan: Scan, what: str) -> str:
    loads = context.published.loaded.get(about)
    seen = f"still see its rows of {loads[-1].ended_at:%Y-%m-%d %H:%M} UTC" if loads else None
    return (
        f"The scan of {about} of {scan.started_at:%Y-%m-%d %H:%M} UTC {what} "
        f"Analysts {seen or 'see no rows of it'}."
    )
