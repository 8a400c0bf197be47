"""Rows of `versions` and version files, kept in step. The symlink says what is published."""

import hashlib
from contextlib import closing

import duckdb

from pipelines.core.clock import utc_now
from pipelines.core.errors import BuildFailed, PartnerSyncError
from pipelines.metadata import versions as rows
from pipelines.metadata.engine import Metadata
from pipelines.metadata.tables import VersionRow
from pipelines.metadata.versions import VersionFiles
from pipelines.publish.stores import BuildStores
from pipelines.warehouse.protocol import Version, Warehouse

LOADED = "SELECT DISTINCT loads.scan_id FROM meta.loads AS loads"


def loaded_scans(warehouse: Warehouse, version: Version | None) -> frozenset[str]:
    """Return the scans that a version holds. Raises StorageFailed or VersionNotFound."""
    if version is None:
        return frozenset()
    with closing(warehouse.open(version.number)) as db:
        return frozenset(scan_id for (scan_id,) in db.execute(LOADED).fetchall())


def scans_in_newest_readable(warehouse: Warehouse) -> frozenset[str]:
    """Return the scans of the published version, else of the newest version that can be read."""
    published = warehouse.published()
    candidates = [published, *reversed(warehouse.versions())] if published else []
    for version in candidates:
        try:
            return loaded_scans(warehouse, version)
        except (PartnerSyncError, duckdb.Error):
            continue
    return frozenset()


def require_unchanged(metadata: Metadata, version: Version) -> None:
    """Raise BuildFailed if a version's file is not the one that was published.

    A lost file, and one whose digest is not known, pass. Reads the whole file, outside the
    transaction, which other processes would wait for.
    """
    with metadata.transaction() as session:
        row = session.get(VersionRow, version.number)
        sha256 = row.sha256 if row else None
    if sha256 is None or not version.path.is_file() or _digest(version) == sha256:
        return
    raise BuildFailed(
        f"Version {version.number} was changed after it was published: {version.path} has another "
        "digest. Nothing is built on it. Analysts see the changed file.",
        "Run `partner-sync versions rebuild`, or `partner-sync versions rollback` to an older "
        "version.",
    )


def reconcile_versions(stores: BuildStores) -> None:
    """Make rows and files agree after a kill, a restored backup or a deleted file.

    The caller holds the lock `build`.
    """
    published = stores.warehouse.published()
    finished = {version.number for version in stores.warehouse.versions()}
    files = VersionFiles(finished, published.number if published else None)
    with stores.metadata.transaction() as session:
        unwanted = rows.reconcile_versions(session, files, utc_now(stores.clock))
    for number in unwanted:
        stores.warehouse.drop(number)


def start_version(stores: BuildStores, base: Version | None, note: str) -> int:
    """Add a row `building`; return its number, one above the highest that was ever used."""
    files = {version.number for version in stores.warehouse.versions()}
    with stores.metadata.transaction() as session:
        number = rows.next_number(session, files)
        base_number = base.number if base else None
        rows.start_version(session, number, base_number, utc_now(stores.clock)).note = note
    return number


def discard_version(stores: BuildStores, number: int) -> None:
    """Mark a version that was not finished, or whose file was deleted."""
    with stores.metadata.transaction() as session:
        rows.delete_version(session, number)


def publish_version(stores: BuildStores, version: Version) -> None:
    """Swap the symlink, record it, and delete versions beyond the newest `keep_versions`."""
    digest = _digest(version)
    stores.warehouse.publish(version)
    with stores.metadata.transaction() as session:
        rows.publish_version(session, version.number, digest, utc_now(stores.clock))
    for old in stores.warehouse.versions()[: -stores.settings.keep_versions]:
        if old != version:
            stores.warehouse.drop(old.number)
            discard_version(stores, old.number)


def _digest(version: Version) -> str:
    with version.path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
