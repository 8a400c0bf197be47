"""Here: which scans each version holds, and what follows: the checkpoint, the versions before.

Not here: rows and files of versions (change).
"""

from contextlib import suppress
from functools import lru_cache
from typing import Final

import duckdb
from sqlalchemy import select

from pipelines.core.errors import NewerFormat, PartnerSyncError
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan
from pipelines.versions.stores import Stores
from pipelines.warehouse.formats import read_format
from pipelines.warehouse.version_files import Version, Warehouse

LOADED: Final = "SELECT loads.scan_id FROM meta.loads AS loads"


def loaded_scans(warehouse: Warehouse, version: Version | None) -> frozenset[str]:
    """Return the scans that a version holds. Raises PartnerSyncError."""
    if version is None:
        return frozenset()
    state = version.file().stat()
    return _loaded_scans(warehouse, version.number, (state.st_ino, state.st_mtime_ns))


# The rule of what is kept asks every version, and to open one costs. Its file never changes, unless
# somebody restores it: so once for each state of the file.
@lru_cache
def _loaded_scans(warehouse: Warehouse, number: int, _state: tuple[int, int]) -> frozenset[str]:
    """Return the scans that a version holds."""
    with warehouse.open(number) as db:
        return frozenset(scan_id for (scan_id,) in db.execute(LOADED).fetchall())


def readable_versions(warehouse: Warehouse) -> dict[Version, frozenset[str]]:
    """Return the versions that can be read, oldest first, with the scans that each holds."""
    readable = dict[Version, frozenset[str]]()
    for version in warehouse.versions():
        with suppress(PartnerSyncError, duckdb.Error):
            readable[version] = loaded_scans(warehouse, version)
    return readable


def has_newer_format(warehouse: Warehouse, version: Version) -> bool:
    """Return whether a newer partner-sync wrote a version."""
    try:
        loaded_scans(warehouse, version)
    except NewerFormat:
        return True
    except (PartnerSyncError, duckdb.Error):
        return False
    return False


def format_of(warehouse: Warehouse, version: Version) -> int:
    """Return the number of the format of a version. Raises PartnerSyncError."""
    with warehouse.open(version.number) as db:
        return read_format(db)


def known_scans(stores: Stores) -> frozenset[str]:
    """Return the scans of the published version; if it is damaged, of the one before.

    Raises NewerFormat.
    """
    published = stores.warehouse.published()
    if published and has_newer_format(stores.warehouse, published):
        loaded_scans(stores.warehouse, published)  # raises
    if published is None:
        return frozenset()
    # Versions never branch: a damaged one holds the scans of the one before, and newer ones.
    known = frozenset[str]()
    for version, scans in readable_versions(stores.warehouse).items():  # the oldest first
        if version.number <= published.number:
            known = scans
    return known


def checkpoint(stores: Stores) -> Version | None:
    """Return the version from which a rebuild starts: the oldest that holds every pruned scan.

    None, if none was pruned, or none holds them all without one that was rolled back.
    """
    with stores.metadata.transaction() as session:
        pruned = set(session.scalars(select(Scan.scan_id).filter_by(status=ScanStatus.PRUNED)))
    if not pruned:
        return None
    # The oldest, so that as much as possible is loaded from scan files. One with a scan that is not
    # known was rolled back: a rebuild from it would publish that scan again.
    known = known_scans(stores)
    for version, scans in readable_versions(stores.warehouse).items():  # the oldest first
        if pruned <= scans <= known:
            return version
    return None


def previous_versions(stores: Stores, version: Version) -> list[Version]:
    """Return the older versions that hold a part of the scans of a version, newest first.

    Any older one, if `version` cannot be read.
    """
    readable = readable_versions(stores.warehouse)
    scans = readable.get(version)
    return [
        older
        for older in reversed(readable)
        if older.number < version.number and (scans is None or readable[older] < scans)
    ]
