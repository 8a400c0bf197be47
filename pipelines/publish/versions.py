"""Rows of `versions` and version files, kept in step. The symlink says what is published."""

import hashlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import duckdb
from sqlalchemy import func, select

from pipelines.core.clock import utc_now
from pipelines.core.errors import BuildFailed, PartnerSyncError
from pipelines.metadata.engine import Metadata
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.tables import VersionRow
from pipelines.metadata.versions import VersionStatus, list_versions
from pipelines.publish.stores import OnNote, Stores
from pipelines.warehouse.duckdb_file import Version, Warehouse

LOADED = "SELECT DISTINCT loads.scan_id FROM meta.loads AS loads"


@contextmanager
def change_versions(stores: Stores, on_note: OnNote) -> Iterator[None]:
    """Hold the lock `build` for the block; before and after it, rows of versions follow the files.

    Whatever the block does to files and symlink is recorded at its end, or before the next one.
    """
    with hold_lock(stores.metadata.locks, "build", on_wait=on_note):
        _reconcile(stores)
        try:
            yield
        finally:
            _reconcile(stores)


def _reconcile(stores: Stores) -> None:
    """Make the rows say what files and symlink say; delete files of builds that did not publish.

    A file without a row is kept: the metadata database may be older than the files. So is a file
    that has a row with a digest: it was published, and a person put it back after it was deleted.
    """
    published = stores.warehouse.published()
    files = {version.number: version for version in stores.warehouse.versions()}
    now = utc_now(stores.clock)
    with stores.metadata.transaction() as session:
        rows = {row.number: row for row in list_versions(session)}
    for number in files.keys() - rows.keys():
        rows[number] = VersionRow(number=number, created_at=now, note="Found without a row.")
        rows[number].status = VersionStatus.PUBLISHED
    for number, row in rows.items():
        version = files.get(number)
        is_kept = version == published or row.sha256 or row.status == VersionStatus.PUBLISHED
        if version is None or not is_kept:
            row.status = VersionStatus.DELETED
            continue
        row.status = VersionStatus.PUBLISHED
        row.sha256 = row.sha256 or _digest(version)  # no transaction waits for that
        if version == published:
            row.published_at = row.published_at or now
    with stores.metadata.transaction() as session:
        session.add_all(rows.values())
    for number in files:
        if rows[number].status == VersionStatus.DELETED:
            stores.warehouse.drop(number)


def start_version(stores: Stores, base: Version | None, note: str) -> int:
    """Add a row `building`; return its number, one above the highest that was ever used."""
    with stores.metadata.transaction() as session:
        number = (session.scalar(select(func.max(VersionRow.number))) or 0) + 1
        row = VersionRow(number=number, created_at=utc_now(stores.clock), note=note)
        row.base = base.number if base else None
        session.add(row)
    return number


def publish_version(stores: Stores, version: Version) -> None:
    """Swap the symlink; delete versions beyond the newest `keep_versions`."""
    stores.warehouse.publish(version)
    for old in stores.warehouse.versions()[: -stores.settings.keep_versions]:
        if old != version:
            stores.warehouse.drop(old.number)


def loaded_scans(warehouse: Warehouse, version: Version | None) -> frozenset[str]:
    """Return the scans that a version holds. Raises StorageFailed or VersionNotFound."""
    if version is None:
        return frozenset()
    with closing(warehouse.open(version.number)) as db:
        return frozenset(scan_id for (scan_id,) in db.execute(LOADED).fetchall())


def scans_in_newest_readable(warehouse: Warehouse) -> frozenset[str]:
    """Return the scans of the published version, else of the newest version that can be read."""
    for version in (warehouse.published(), *reversed(warehouse.versions())):
        with suppress(PartnerSyncError, duckdb.Error):
            return loaded_scans(warehouse, version)
    return frozenset()


def require_unchanged(metadata: Metadata, version: Version) -> None:
    """Raise BuildFailed if a version's file is not the one that was published.

    A lost file, and one whose digest is not known, pass. Reads the whole file, outside the
    transaction, which other processes would wait for.
    """
    with metadata.transaction() as session:
        row = session.get(VersionRow, version.number)
    if row is None or not row.sha256 or not version.path.is_file():
        return
    if _digest(version) != row.sha256:
        raise BuildFailed(
            f"Version {version.number} was changed after it was published: {version.path} has "
            "another digest. Nothing is built on it. Analysts see the changed file.",
            "Run `partner-sync versions rebuild`, or `partner-sync versions rollback` to an older "
            "version.",
        )


def _digest(version: Version) -> str:
    with version.path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
