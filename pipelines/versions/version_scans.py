"""Here: which scans each version holds, and what follows: the checkpoint, the versions before.

A version says it itself (`meta.loads`). Its row says the same, for machines that do not have its
file. Not here: rows and files of versions (change).
"""

from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, NamedTuple

import duckdb
from sqlalchemy import select

from pipelines.core.errors import NewerFormat, PartnerSyncError
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan, VersionRow
from pipelines.versions.stores import Stores
from pipelines.warehouse.formats import newest, read_format
from pipelines.warehouse.version_files import Version, Warehouse

LOADED: Final = "SELECT loads.scan_id FROM meta.loads AS loads"


class VersionContent(NamedTuple):
    """What a version holds: the number of its format, and its scans."""

    format: int
    scans: frozenset[str]


def loaded_scans(stores: Stores, version: Version | None) -> frozenset[str]:
    """Return the scans that a version holds. Raises PartnerSyncError."""
    if version is None:
        return frozenset()
    return read_content(stores, version).scans


def format_of(stores: Stores, version: Version) -> int:
    """Return the number of the format of a version. Raises PartnerSyncError."""
    return read_content(stores, version).format


def read_content(stores: Stores, version: Version) -> VersionContent:
    """Return what a version holds: as its file says, or its row if the file is not here.

    Raises PartnerSyncError, of which NewerFormat is one.
    """
    if not version.path.is_file() and version in stores.warehouse.versions():
        recorded = _recorded(stores, version.number)
        if recorded is not None:
            _require_known_format(version, recorded)
            return recorded
    state = version.file().stat()
    return _read_file(stores.warehouse, version.number, (state.st_ino, state.st_mtime_ns))


# The rule of what is kept asks every version, and to open one costs. Its file never changes, unless
# somebody restores it: so once for each state of the file.
@lru_cache
def _read_file(warehouse: Warehouse, number: int, _state: tuple[int, int]) -> VersionContent:
    with warehouse.open(number) as db:
        scans = frozenset(scan_id for (scan_id,) in db.execute(LOADED).fetchall())
        return VersionContent(read_format(db), scans)


def _require_known_format(version: Version, content: VersionContent) -> None:
    if content.format > newest():
        raise NewerFormat(
            f"Version {version.number} has format {content.format}, and this partner-sync reads "
            f"formats up to {newest()}: a newer one wrote it. The version was not changed.",
            "Install the newer partner-sync.",
        )


def describe(stores: Stores, version: Version) -> dict[str, Any]:
    """Return what the row of a version says of its content.

    `scans` are those that it holds besides those of version `besides`; None: these are all.
    """
    content = read_content(stores, version)
    with stores.metadata.transaction() as session:
        row = session.get(VersionRow, version.number)
    base = row.base if row is not None else None
    base_content = _recorded(stores, base) if base is not None else None
    if base_content is None or not base_content.scans <= content.scans:
        return {"format": content.format, "besides": None, "scans": sorted(content.scans)}
    added = content.scans - base_content.scans
    return {"format": content.format, "besides": base, "scans": sorted(added)}


def _recorded(stores: Stores, number: int) -> VersionContent | None:
    """Return what the rows say that a version holds; None if they do not say it."""
    content = select(VersionRow.number, VersionRow.content).where(VersionRow.number <= number)
    with stores.metadata.transaction() as session:
        of_versions = {row.number: row.content for row in session.execute(content)}
    newest_content = of_versions.get(number)
    scans = set[str]()
    besides: int | None = number
    while besides is not None:
        described = of_versions.get(besides)
        if described is None:
            return None
        scans.update(described["scans"])
        besides = described["besides"]
    return VersionContent(newest_content["format"], frozenset(scans)) if newest_content else None


def readable_versions(stores: Stores) -> dict[Version, frozenset[str]]:
    """Return the versions that can be read, oldest first, with the scans that each holds."""
    readable = dict[Version, frozenset[str]]()
    for version in stores.warehouse.versions():
        with suppress(PartnerSyncError, duckdb.Error):
            readable[version] = loaded_scans(stores, version)
    return readable


def has_newer_format(stores: Stores, version: Version) -> bool:
    """Return whether a newer partner-sync wrote a version."""
    try:
        read_content(stores, version)
    except NewerFormat:
        return True
    except (PartnerSyncError, duckdb.Error):
        return False
    return False


def known_scans(stores: Stores) -> frozenset[str]:
    """Return the scans of the published version; if it is damaged, of the one before.

    Raises NewerFormat.
    """
    published = stores.warehouse.published()
    if published is None:
        return frozenset()
    if has_newer_format(stores, published):
        read_content(stores, published)  # raises
    # Versions never branch: a damaged one holds the scans of the one before, and newer ones.
    known = frozenset[str]()
    for version, scans in readable_versions(stores).items():  # the oldest first
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
    for version, scans in readable_versions(stores).items():  # the oldest first
        if pruned <= scans <= known:
            return version
    return None


def previous_versions(stores: Stores, version: Version) -> list[Version]:
    """Return the older versions that hold a part of the scans of a version, newest first.

    Any older one, if `version` cannot be read.
    """
    readable = readable_versions(stores)
    scans = readable.get(version)
    return [
        older
        for older in reversed(readable)
        if older.number < version.number and (scans is None or readable[older] < scans)
    ]
