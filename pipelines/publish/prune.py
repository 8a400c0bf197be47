"""Deletes scan files and versions by age. What they held stays in the checkpoint, a version."""

from datetime import datetime

from sqlalchemy import select

from pipelines.metadata.scans import ScanStatus, prunable_scans
from pipelines.metadata.tables import Scan, VersionRow
from pipelines.publish.stores import Stores
from pipelines.publish.versions import (
    change_versions,
    drop_version,
    loaded_scans,
    readable_versions,
    require_unchanged,
)
from pipelines.warehouse.books import version_of_published_books
from pipelines.warehouse.duckdb_file import Row


def prune(stores: Stores, before: datetime, *, dry_run: bool = False) -> list[Row]:
    """Delete versions that were built, and scans that began, before a time; return one row each.

    The published version stays, and that of the published books. A scan that a version holds goes
    only if all that stay hold it: the oldest is the checkpoint, from which `rebuild` starts.
    `dry_run` deletes nothing. Raises PartnerSyncError where a version that stays was changed, or
    the published one cannot be read.
    """
    with change_versions(stores):
        published, files = stores.warehouse.published(), stores.warehouse.versions()
        of_books = version_of_published_books(stores.warehouse)
        with stores.metadata.transaction() as session:
            aged = select(VersionRow.number).where(VersionRow.created_at < before)
            numbers = set(session.scalars(aged))
        old = [each for each in files if each.number in numbers]
        old = [each for each in old if each != published and each.number != of_books]
        kept = set(files).difference(old)
        for each in kept:
            require_unchanged(stores.metadata, each)
        readable = readable_versions(stores.warehouse)
        held = [scans for each, scans in readable.items() if each in kept]
        in_all = loaded_scans(stores.warehouse, published).intersection(*held)
        in_some = frozenset[str]().union(*held) - in_all  # a person may roll back to their version
        with stores.metadata.transaction() as session:
            every = prunable_scans(session, in_all, before)
        scans = [scan for scan in every if scan.scan_id not in in_some]
        if not dry_run:
            for each in old:
                drop_version(stores, each.number)
            _prune_scans(stores, scans, in_all)
    names = [f"{each.connection}/{each.stream} {each.started_at:%Y-%m-%d %H:%M}" for each in scans]
    return [
        *({"kind": "scan", "name": name} for name in names),
        *({"kind": "version", "name": str(each.number)} for each in old),
    ]


def _prune_scans(stores: Stores, scans: list[Scan], loaded: frozenset[str]) -> None:
    """Mark loaded scans before their files are deleted; delete the rows of the others afterwards.

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
