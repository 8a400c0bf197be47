"""Here: checks of one list: its scans, and what the published version has of it.

Not here: checks of its connection (connections).
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pipelines.checks.check import MINUTE, Check, Problem
from pipelines.checks.context import CheckContext, known
from pipelines.checks.published import ListName
from pipelines.core.finding import Finding, Severity
from pipelines.core.proof import ENDS_THERE_AGAIN
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan

READ_LIST: Final = "partner-sync sync --connection {connection} --stream {stream}"
# Checks of their own look for these: they hold for longer than one load.
OWN_CHECK: Final = {"records_quarantined", "values_in_extra"}


@Check(READ_LIST)
def list_not_loaded(context: CheckContext, about: ListName) -> Iterator[str]:
    """Does the published version contain the list?"""
    context.require_readable()
    if about not in context.published.loaded:
        yield f"No scan of {about} is published. Analysts see no rows of it."


@Check(READ_LIST)
def list_partial(context: CheckContext, about: ListName) -> Iterator[Problem]:
    """Is the newest published scan of the list complete?"""
    load = context.load(about)
    if load.complete:
        return
    message = load.sentence.removeprefix(f"{about.stream}: ")
    if ENDS_THERE_AGAIN in message:
        remedy = "Ask the service how to read the rows behind that offset."
        yield {"message": message, "remedy": remedy}
    else:
        yield message


@Check('partner-sync approve {connection} {stream} --reason "..."', blocks=True)
def scan_held(context: CheckContext, about: ListName) -> Iterator[str]:
    """Is no scan of the list held?"""
    context.scan(about)
    # At most the newest scan of a list waits: a newer one takes the place of all before it.
    held = context.held.get(about)
    if held:
        yield _about_scan(context, held, f"waits for approval: {held.reason}")


@Check(READ_LIST, Severity.ERROR)
def scan_failed(context: CheckContext, about: ListName) -> Iterator[str]:
    """Could the newest scan of the list be loaded?"""
    scan = context.scan(about)
    if scan.status == ScanStatus.FAILED:
        failed = _about_scan(context, scan, f"could not be loaded: {scan.reason}")
        yield f"{failed} If its file is restored, `partner-sync versions rebuild` loads it."


@Check("partner-sync versions build")
def scan_not_published(context: CheckContext, about: ListName) -> Iterator[str]:
    """Is every scan of the list published that needs no approval?"""
    context.require_readable()
    context.scan(about)
    waiting = context.waiting.get(about)
    if waiting:
        yield _about_scan(context, waiting, "is read but not published.")


@Check("Read quarantine.records, and ask the service to correct the records.")
def records_quarantined(context: CheckContext, about: ListName) -> Iterator[str]:
    """Is every record of the list in a table?"""
    records = context.load(about).in_quarantine
    if records:
        yield (
            f"{records:,} records of {about} are in quarantine.records, with the reason. Rows with "
            "their keys keep the values that were loaded before; sums may lack them."
        )


@Check("Check with the service whether the field has another meaning now.")
def values_in_extra(context: CheckContext, about: ListName) -> Iterator[str]:
    """Does every value of the list fit its column?"""
    rows = context.load(about).not_fitting
    if rows:
        yield (
            f"{rows:,} rows of {about} have values that do not fit their column. They are in "
            "column `_extra` as they were sent; their own column is NULL."
        )


@Check("partner-sync versions rebuild")
def types_not_applied(context: CheckContext, about: ListName) -> Iterator[str]:
    """Have all fields of the list the types that settings declare?"""
    stream = context.settings.streams.get(about.stream)
    declared = {} if stream is None else stream.types
    applied = context.load(about).types
    others = sorted(field for field, kind in declared.items() if applied.get(field, kind) != kind)
    if others:
        yield (
            f"Columns of {about} do not have the types that settings declare: {', '.join(others)}. "
            "They keep their earlier types until the tables are built again from the scan files."
        )
    missing = sorted(declared.keys() - applied.keys())
    if missing:
        yield (
            f"Settings declare types of fields that no record of {about} has as a single value: "
            f"{', '.join(missing)}. Correct [streams.{about.stream}.types] in settings.toml."
        )


@Check("Follow the message of the finding.")
def load_reported(context: CheckContext, about: ListName) -> Iterator[Finding]:
    """Did the newest load of the list report nothing else that needs attention?"""
    for finding in context.load(about).findings:
        if finding.code not in OWN_CHECK:
            yield finding


@Check(READ_LIST)
def list_stale(context: CheckContext, about: ListName) -> Iterator[str]:
    """Are the published rows of the list new enough?"""
    load = context.load(about)
    complete_at = known(load.complete_at, f"No scan of {about} is complete.")
    hours = (context.now - complete_at) / timedelta(hours=1)
    if hours > context.settings.stale_after_hours:
        yield (
            f"The newest complete scan of {about} ended at {complete_at:{MINUTE}} UTC, "
            f"{hours:,.0f} hours ago. Analysts see the rows of that time."
        )


def _about_scan(context: CheckContext, scan: Scan, what: str) -> str:
    about = ListName(scan.connection, scan.stream)
    load = context.published.loaded.get(about)
    seen = f"still see its rows of {load.ended_at:{MINUTE}} UTC" if load else "see no rows of it"
    what = what.rstrip(".")
    return f"The scan of {about} of {scan.started_at:{MINUTE}} UTC {what}. Analysts {seen}."
