"""Deletes scan files and versions by age. What they held stays in the checkpoint, a version."""

from datetime import datetime

from sqlalchemy import select

from pipelines.metadata.scans import ScanStatus, prunable_scans
from pipelines.metadata.tables import Scan, VersionRow, VersionStatus
from pipelines.publish import versions
from pipelines.publish.versions import Stores
from pipelines.warehouse.duckdb_file import Row


def prune(stores: Stores, before: datetime, *, dry_run: bool = False) -> list[Row]:
    """Delete scans that began, and versions that were built, before a time; return one row each.

    A scan that a version holds goes only if the published one holds it. The oldest version that
    holds all pruned scans becomes the checkpoint, from which `rebuild` starts. `dry_run` deletes
    nothing. Raises PartnerSyncError where the checkpoint was changed.
    """
    with versions.change_versions(stores):
        published = stores.warehouse.published()
        loaded = versions.loaded_scans(stores.warehouse, published)
        held = versions.readable_versions(stores.warehouse)
        # A person may roll back to their version, and rebuild it.
        undone = versions.scans_of_all(stores) - loaded
        with stores.metadata.transaction() as session:
            every = prunable_scans(session, loaded, before)
            kept = select(VersionRow).filter_by(status=VersionStatus.PUBLISHED)
            rows = session.scalars(kept.order_by(VersionRow.number)).all()
            pruned = session.scalars(select(Scan.scan_id).filter_by(status=ScanStatus.PRUNED))
            gone = frozenset(pruned)
        scans = [scan for scan in every if scan.scan_id not in undone]
        gone |= loaded.intersection(scan.scan_id for scan in scans)
        keeper = versions.checkpoint(stores, gone)
        # Without a pruned scan, nothing could be built on a version any more.
        lacking = {each.number for each, has in held.items() if keeper and not gone <= has}
        old = [
            row.number
            for row in rows
            if (row.created_at < before or row.number in lacking)
            and row.number not in {each.number for each in (published, keeper) if each}
        ]
        if not dry_run:
            if keeper:
                versions.require_unchanged(stores.metadata, keeper)
            _prune_scans(stores, scans, loaded)
            for number in old:
                stores.warehouse.drop(number)
    names = [f"{each.connection}/{each.stream} {each.started_at:%Y-%m-%d %H:%M}" for each in scans]
    return [
        *({"kind": "scan", "name": name} for name in names),
        *({"kind": "version", "name": str(number)} for number in old),
    ]


def _prune_scans(stores: Stores, scans: list[Scan], loaded: frozenset[str]) -> None:
    """Mark loaded scans before their files are deleted, and forget the others afterwards.

    So a prune that was killed is finished by the next one.
    """
    with stores.metadata.transaction() as session:
        for scan in scans:
            if scan.scan_id in loaded:
                session.merge(scan).status = ScanStatus.PRUNED
        pruned = session.scalars(select(Scan).filter_by(status=ScanStatus.PRUNED)).all()
    stores.archive.delete([*scans, *pruned])
    with stores.metadata.transaction() as session:
        for scan in scans:
            if scan.scan_id not in loaded:
                session.delete(session.merge(scan))
