"""Publishes an older version again, and keeps the next build from undoing that."""

from typing import Final

from pipelines.core.clock import utc_now
from pipelines.core.errors import VersionNotFound
from pipelines.metadata.decisions import add_decision
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.scans import ScanStatus, set_status
from pipelines.metadata.tables import Decision
from pipelines.publish import versions
from pipelines.publish.build import BUILD_LOCK
from pipelines.publish.stores import BuildStores, OnNote, ignore_note
from pipelines.warehouse.protocol import Version

REASON: Final = "rolled back to version {number}: {reason}"


def rollback(
    stores: BuildStores, number: int, person: str, reason: str, on_note: OnNote = ignore_note
) -> Version:
    """Publish version `number` again; hold every scan that only later versions have.

    The scans are held before the link is swapped: after a kill in between, analysts see the newer
    version until the command is run again, and no build undoes the decision. Raises
    VersionNotFound, BuildFailed where the file was changed, LockHeld, StorageFailed.
    """
    with hold_lock(stores.metadata.locks, BUILD_LOCK, on_wait=on_note):
        versions.reconcile_versions(stores)
        known = {version.number: version for version in stores.warehouse.versions()}
        if number not in known:
            raise _not_kept(number, list(known))
        undone = _scans_only_later(stores, known, number)
        versions.require_unchanged(stores.metadata, known[number])
        with stores.metadata.transaction() as session:
            add_decision(session, _decision(stores, number, person, reason))
            for scan_id in undone:
                why = REASON.format(number=number, reason=reason)
                set_status(session, scan_id, ScanStatus.HELD, why)
        stores.warehouse.publish(known[number])
        return known[number]


def _scans_only_later(
    stores: BuildStores, known: dict[int, Version], number: int
) -> frozenset[str]:
    later = [version for version in known.values() if version.number > number]
    scans = [versions.loaded_scans(stores.warehouse, version) for version in later]
    return frozenset().union(*scans) - versions.loaded_scans(stores.warehouse, known[number])


def _decision(stores: BuildStores, number: int, person: str, reason: str) -> Decision:
    return Decision(
        decided_at=utc_now(stores.clock),
        person=person,
        kind="rollback",
        subject=str(number),
        reason=reason,
    )


def _not_kept(number: int, known: list[int]) -> VersionNotFound:
    listed = ", ".join(map(str, known)) or "none"
    return VersionNotFound(
        f"Version {number} is not kept (kept: {listed}). Nothing was changed.",
        "Run `partner-sync versions list`, then choose one of it.",
    )
