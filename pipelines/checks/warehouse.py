"""Here: checks of the published version, of versions and of what is done to all of them.

Not here: checks of books (books), of one connection (connections), of one list (lists).
"""

from collections.abc import Iterator

from sqlalchemy import select

from pipelines.checks.check import MINUTE, Check, Problem
from pipelines.checks.context import CannotKnow, CheckContext
from pipelines.checks.published import ListName
from pipelines.core.finding import Severity
from pipelines.metadata.decisions import unfinished_erasures
from pipelines.metadata.findings import last_notifications
from pipelines.metadata.tables import Scan


@Check("partner-sync versions rebuild", Severity.ERROR, "warehouse")
def warehouse_unreadable(context: CheckContext, _about: ListName) -> Iterator[Problem]:
    """Can analysts open the published version?"""
    published = context.published
    if published.problem:
        message = f"Analysts cannot read the warehouse. {published.problem}"
        # What a newer release wrote, or what is in the place of the symlink, no rebuild cures.
        yield {"message": message, "remedy": published.remedy} if published.remedy else message
    elif context.published.version is None:
        if not context.versions():
            raise CannotKnow("Nothing is published yet.")
        yield "The symlink of the warehouse is missing. Analysts find no file. Versions are kept."


@Check("partner-sync versions list", Severity.INFO, "warehouse")
def version_rolled_back(context: CheckContext, _about: ListName) -> Iterator[str]:
    """Is the newest version the published one?"""
    seen = context.version().number
    newer = [str(number) for number in context.versions() if number > seen]
    if newer:
        yield (
            f"Analysts see version {seen}, after a rollback. Newer versions exist: "
            f"{', '.join(newer)}."
        )


@Check("Restore metadata.db from a backup.", Severity.ERROR, "warehouse")
def scans_unknown(context: CheckContext, _about: ListName) -> Iterator[str]:
    """Does the metadata database know every scan of the published version?"""
    context.version()
    scan_ids = context.metadata.scalars(select(Scan.scan_id))
    unknown = context.published.scan_ids.difference(scan_ids)
    if unknown:
        yield (
            f"{len(unknown):,} scans of the published version are not in the metadata database: it "
            "was lost or is an old copy. Rows stay as they are, but cannot be rebuilt."
        )


@Check(
    'Run `partner-sync erase --reason "..."` again with the same value.',
    Severity.ERROR,
    "warehouse",
)
def erasure_unfinished(context: CheckContext, _about: ListName) -> Iterator[str]:
    """Is every erasure finished?"""
    for erasure in unfinished_erasures(context.metadata):
        yield (
            f"The erasure that {erasure.person} began at {erasure.decided_at:{MINUTE}} UTC is not "
            "finished. Files may still contain the value."
        )


@Check("partner-sync notify test", scope="warehouse")
def notification_failed(context: CheckContext, _about: ListName) -> Iterator[str]:
    """Did every channel accept its last message?"""
    channels = {*context.settings.notify, *context.settings.notify_summary}
    for last in last_notifications(context.metadata):
        if last.error and last.channel in channels:
            yield f"Findings were not sent at {last.sent_at:{MINUTE}} UTC: {last.error}"
