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
from pipelines.metadata.versions import KEPT, VersionStatus, list_versions
from pipelines.publish.stores import OnNote, Stores
from pipelines.warehouse.duckdb_file import Version, Warehouse

LOADED = "SELECT DISTINCT loads.scan_id FROM meta.loads AS loads"


@contextmanager
def change_versions(stores: Stores, on_note: OnNote) -> Iterator[None]:
    """Hold the lock `build` for the block; before and after it, rows of versions follow the files.

    An interrupt inside a statement, from which DuckDB makes a RuntimeError, is raised again.
    """
    with hold_lock(stores.metadata.locks, "build", on_wait=on_note):
        _reconcile(stores)
        try:
            yield
        except RuntimeError as error:
            if isinstance(error.__cause__, KeyboardInterrupt):
                raise error.__cause__ from error
            raise
        finally:
            _reconcile(stores)


def _reconcile(stores: Stores) -> None:
    """Make the rows say what files and symlink say; delete files of builds that did not publish.

    A file without a row is kept: the metadata database may be older than the files. So is a file
    that has a row with a digest: it was published, and a person put it back after it was deleted.
    """
    published = stores.warehouse.published()
    files = {version.number: version for version in stores.warehouse.versions()}
    with stores.metadata.transaction() as session:
        rows = {row.number: row for row in list_versions(session)}
    for number in files.keys() - rows.keys():
        rows[number] = VersionRow(number=number, created_at=utc_now(stores.clock))
        rows[number].note, rows[number].sha256 = "Found without a row.", _digest(files[number])
    for number, row in rows.items():
        version, was = files.get(number), row.status
        row.status = VersionStatus.DELETED
        if version is not None and (row.sha256 or version == published):
            row.status = was if was in KEPT else VersionStatus.PUBLISHED
            row.sha256 = row.sha256 or _digest(version)  # no transaction waits for that
    with stores.metadata.transaction() as session:
        session.add_all(rows.values())
    for number in files:
        if rows[number].status == VersionStatus.DELETED:
            stores.warehouse.drop(number)


def start_version(stores: Stores, base: Version | None, note: str) -> int:
    """Add a row `building`; return its number, one above the highest that was ever used."""
    row = VersionRow(number=1, created_at=utc_now(stores.clock), note=note)
    row.base = base.number if base else None
    with stores.metadata.transaction() as session:
        row.number += session.scalar(select(func.max(VersionRow.number))) or 0
        session.add(row)
    return row.number


def publish_version(stores: Stores, version: Version) -> None:
    """Swap the symlink to a new version; delete those beyond the newest `keep_versions`."""
    stores.warehouse.publish(version)
    needed = checkpoint(stores)
    for old in stores.warehouse.versions()[: -stores.settings.keep_versions]:
        if old != needed:
            stores.warehouse.drop(old.number)


def checkpoint(stores: Stores) -> Version | None:
    """Return the version that holds every pruned scan; None where there is none."""
    with stores.metadata.transaction() as session:
        row = session.scalar(select(VersionRow).filter_by(status=VersionStatus.CHECKPOINT))
    versions = stores.warehouse.versions()
    return next((each for each in versions if row and each.number == row.number), None)


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

    A lost file, and one whose digest is not known, pass. Reads the whole file.
    """
    with metadata.transaction() as session:  # which others wait for: the file is read after it
        row = session.get(VersionRow, version.number)
    known = row and version.path.is_file() and row.sha256
    if known and _digest(version) != known:
        raise BuildFailed(
            f"Version {version.number} was changed after it was published: {version.path} has "
            "another digest. Nothing is built on it. Whoever opens it sees the changed file.",
            "Run `partner-sync versions rebuild`, or `partner-sync versions rollback` to an older "
            "version.",
        )


def _digest(version: Version) -> str:
    with version.path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
