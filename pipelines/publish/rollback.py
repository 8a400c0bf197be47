"""Publishes an older version again, and keeps the next build from undoing that."""

from sqlalchemy import select

from pipelines.core.clock import utc_now
from pipelines.core.errors import VersionNotFound
from pipelines.metadata.decisions import add_decision
from pipelines.metadata.scans import ScanStatus, set_status
from pipelines.metadata.tables import Decision, Scan
from pipelines.publish.stores import OnNote, Stores
from pipelines.publish.versions import change_versions, loaded_scans, require_unchanged
from pipelines.warehouse.duckdb_file import Version


def rollback(
    stores: Stores, number: int, person: str, reason: str, on_note: OnNote = lambda _note: None
) -> Version:
    """Publish version `number` again; hold every scan that only later versions have.

    The scans are held before the link is swapped: after a kill in between, analysts see the newer
    version until the command is run again, and no build undoes the decision. Raises
    VersionNotFound, BuildFailed where the file was changed, LockHeld, StorageFailed.
    """
    with change_versions(stores, on_note):
        kept = {version.number: version for version in stores.warehouse.versions()}
        if number not in kept:
            raise VersionNotFound(
                f"Version {number} is not kept (kept: {', '.join(map(str, kept)) or 'none'}). "
                "Nothing was changed.",
                "Run `partner-sync versions list`, then choose one of it.",
            )
        require_unchanged(stores.metadata, kept[number])
        later = [loaded_scans(stores.warehouse, kept[each]) for each in kept if each > number]
        undone = {*()}.union(*later) - loaded_scans(stores.warehouse, kept[number])
        decision = Decision(
            decided_at=utc_now(stores.clock),
            person=person,
            kind="rollback",
            subject=str(number),
            reason=reason,
        )
        why = f"rolled back to version {number}: {reason}"
        with stores.metadata.transaction() as session:
            add_decision(session, decision)
            for scan in session.scalars(select(Scan).where(Scan.scan_id.in_(undone))).all():
                set_status(session, scan.scan_id, ScanStatus.HELD, why)
        stores.warehouse.publish(kept[number])
        return kept[number]
