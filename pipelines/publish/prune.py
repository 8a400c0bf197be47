"""Deletes scan files and versions by age. What they held stays in the checkpoint, a version."""

from datetime import datetime
from typing import Any

from sqlalchemy import select

from pipelines.metadata.scans import ScanStatus, prunable_scans
from pipelines.metadata.tables import Scan, VersionRow
from pipelines.metadata.versions import KEPT, VersionStatus, list_versions
from pipelines.publish.stores import OnNote, Stores
from pipelines.publish.versions import change_versions, loaded_scans, require_unchanged
from pipelines.warehouse.duckdb_file import Version

Row = dict[str, Any]


def prune(
    stores: Stores, before: datetime, on_note: OnNote = lambda _note: None, *, dry_run: bool = False
) -> list[Row]:
    """Delete scans that began, and versions that were built, before a time; return one row each.

    A loaded scan goes only if the published version holds it. The oldest version that holds all
    pruned scans becomes the checkpoint, from which `rebuild` starts. `dry_run` deletes nothing.
    Raises BuildFailed where the checkpoint was changed, LockHeld, StorageFailed.
    """
    with change_versions(stores, on_note):
        published = stores.warehouse.published()
        holds = {each: loaded_scans(stores.warehouse, each) for each in stores.warehouse.versions()}
        loaded = holds[published] if published else frozenset[str]()
        with stores.metadata.transaction() as session:
            scans = prunable_scans(session, loaded, before)
            pruned = set(session.scalars(select(Scan.scan_id).filter_by(status=ScanStatus.PRUNED)))
            rows = list_versions(session)
        needed = (pruned | {each.scan_id for each in scans}) & loaded
        keeper = next((each for each in holds if needed and needed <= holds[each]), None)
        old = [
            row.number
            for row in rows
            # Without a pruned scan, nothing could be built on a version any more.
            if (row.created_at < before or (keeper and row.number < keeper.number))
            and row.status in KEPT
            and row.number not in {each.number for each in (published, keeper) if each}
        ]
        result = [*map(_scan_row, scans), *({"kind": "version", "name": str(n)} for n in old)]
        if not dry_run:
            if keeper:
                require_unchanged(stores.metadata, keeper)
            _prune_scans(stores, scans, loaded, keeper)
            for number in old:
                stores.warehouse.drop(number)
    return result


def _scan_row(scan: Scan) -> Row:
    return {
        "kind": "scan",
        "name": f"{scan.connection}/{scan.stream} {scan.started_at:%Y-%m-%d %H:%M}",
    }


def _prune_scans(
    stores: Stores, scans: list[Scan], loaded: frozenset[str], keeper: Version | None
) -> None:
    """Mark loaded scans before their files are deleted, and forget the others afterwards.

    So a prune that was killed is finished by the next one.
    """
    with stores.metadata.transaction() as session:
        for row in session.scalars(select(VersionRow).where(VersionRow.status.in_(KEPT))):
            is_keeper = keeper is not None and row.number == keeper.number
            row.status = VersionStatus.CHECKPOINT if is_keeper else VersionStatus.PUBLISHED
        for scan in scans:
            if scan.scan_id in loaded:
                session.merge(scan).status = ScanStatus.PRUNED
        pruned = list(session.scalars(select(Scan).filter_by(status=ScanStatus.PRUNED)))
    stores.archive.delete([*scans, *pruned])
    with stores.metadata.transaction() as session:
        for scan in scans:
            if scan.scan_id not in loaded:
                session.delete(session.merge(scan))
