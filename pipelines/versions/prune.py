"""Deletes scan files and versions by age. What they held stays in the checkpoint, a version."""

from datetime import datetime

from sqlalchemy import select

from pipelines.metadata.scans import ScanStatus, prunable_scans
from pipelines.metadata.tables import Scan, VersionRow
from pipelines.versions.change import change_versions, drop_version, require_unchanged
from pipelines.versions.stores import Stores
from pipelines.versions.version_scans import loaded_scans, readable_versions
from pipelines.warehouse.books import version_of_published_books
from pipelines.warehouse.duckdb_file import Row
from pipelines.warehouse.version_files import Version


def prune(stores: Stores, before: datetime, *, dry_run: bool = False) -> list[Row]:
    """Delete versions that were built, and scans that began, before a time; return one row each.

    The published version stays, and that of the published books. A scan that a version holds goes
    only if all that stay hold it: the oldest is the checkpoint, from which `rebuild` starts.
    `dry_run` deletes nothing. Raises PartnerSyncError where a version that stays was changed, or
    the published one cannot be read.
    """
    with change_versions(stores):
        versions = _old_versions(stores, before)
        kept = set(stores.warehouse.versions()).difference(versions)
        for version in kept:
            require_unchanged(stores.metadata, version)
        readable = readable_versions(stores)
        loaded = [scans for version, scans in readable.items() if version in kept]
        published = stores.warehouse.published()
        in_all = loaded_scans(stores, published).intersection(*loaded)
        in_some = frozenset[str]().union(*loaded) - in_all
        with stores.metadata.transaction() as session:
            scans = prunable_scans(session, in_all, before)
        # A person may roll back to a version that holds such a scan.
        scans = [scan for scan in scans if scan.scan_id not in in_some]
        if not dry_run:
            for version in versions:
                drop_version(stores, version.number)
            _prune_scans(stores, scans, in_all)
    rows = list[Row]()
    for scan in scans:
        name = f"{scan.connection}/{scan.stream} {scan.started_at:%Y-%m-%d %H:%M}"
        rows.append({"kind": "scan", "name": name})
    rows.extend({"kind": "version", "name": str(version.number)} for version in versions)
    return rows


def _old_versions(stores: Stores, before: datetime) -> list[Version]:
    """Return the versions that were built before a time and may be deleted."""
    published = stores.warehouse.published()
    of_books = version_of_published_books(stores.warehouse)
    built_before = select(VersionRow.number).where(VersionRow.created_at < before)
    with stores.metadata.transaction() as session:
        numbers = set(session.scalars(built_before))
    if published is not None:
        numbers.discard(published.number)
    if of_books is not None:
        numbers.discard(of_books)
    return [version for version in stores.warehouse.versions() if version.number in numbers]


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
