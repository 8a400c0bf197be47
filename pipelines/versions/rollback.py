"""Here: an older version is published again, and scans that only newer ones have are held.

Not here: the books of the older version (finance.books), which scans a version holds
(version_scans).
"""

from sqlalchemy import select

from pipelines.core.errors import PartnerSyncError
from pipelines.metadata.decisions import add_decision
from pipelines.metadata.scans import SET_ASIDE, ScanStatus
from pipelines.metadata.tables import Scan
from pipelines.versions.change import change_versions, link_version, require_unchanged
from pipelines.versions.stores import Stores
from pipelines.versions.version_scans import loaded_scans, previous_versions, readable_versions
from pipelines.warehouse.version_files import Version


def roll_back(stores: Stores, number: int | None, reason: str) -> str:
    """Publish an older version (None: the newest with older data) again; return what changed.

    Every scan that it lacks and another version has is held, before the link is swapped: after a
    kill in between, analysts see the newer version until the command is run again, and no build
    undoes the decision. Raises PartnerSyncError where the version is not kept or the file was
    changed, LockHeld, StorageFailed.
    """
    if number is None:
        number = _number_before(stores)
    with change_versions(stores):
        version = _kept_version(stores, number)
        require_unchanged(stores.metadata, version)
        _set_scans_aside(stores, version, reason)
        link_version(stores, version)
    return (
        f"Analysts now see version {number}. Scans that it does not contain are held: "
        "`partner-sync status` shows the newest of each list, `partner-sync approve` loads it. The "
        "next build deletes the versions that contain them."
    )


def _number_before(stores: Stores) -> int:
    """Return the newest version with older data than the published one. Raises PartnerSyncError."""
    published = stores.warehouse.published()
    older = previous_versions(stores, published) if published else []
    if not older:
        raise PartnerSyncError(
            "There is no older version of the data. Nothing was changed.",
            "Run `partner-sync versions list` to see which versions are kept.",
        )
    return older[0].number


def _kept_version(stores: Stores, number: int) -> Version:
    """Return a version that is kept. Raises PartnerSyncError for another number."""
    kept = {version.number: version for version in stores.warehouse.versions()}
    if number not in kept:
        raise PartnerSyncError(
            f"Version {number} is not kept (kept: {', '.join(map(str, kept)) or 'none'}). "
            "Nothing was changed.",
            "Run `partner-sync versions list`, then choose one of these.",
        )
    return kept[number]


def _set_scans_aside(stores: Stores, version: Version, reason: str) -> None:
    """Hold the scans that only other versions have, and record the decision.

    A scan of the version that an earlier rollback held waits for a build again.
    """
    contained = loaded_scans(stores, version)
    in_versions = frozenset[str]().union(*readable_versions(stores).values())
    undone = in_versions - contained
    with stores.metadata.transaction() as session:
        add_decision(session, stores.decision("rollback", str(version.number), reason))
        for scan in session.scalars(select(Scan)).all():
            is_aside = scan.status in SET_ASIDE
            if scan.scan_id in undone and not is_aside and scan.status != ScanStatus.PRUNED:
                scan.status = ScanStatus.HELD
                scan.reason = f"rolled back to version {version.number}: {reason}"
            elif scan.scan_id in contained and is_aside:  # by an earlier rollback
                scan.status = ScanStatus.SEALED
                scan.reason = None
