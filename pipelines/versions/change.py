"""Here: the lock of who changes versions or books, and rows of `versions`, which follow the files.

The symlink says what is published. Not here: what a version is made of (build), its file
(warehouse.version_files), when it is published (publish, rollback), which scans it holds
(version_scans).
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import duckdb
from sqlalchemy import select

from pipelines.core import stop
from pipelines.core.errors import PartnerSyncError, Superseded
from pipelines.metadata.engine import Metadata
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.scans import SET_ASIDE
from pipelines.metadata.tables import Scan, VersionRow, VersionStatus
from pipelines.versions.left_over import remove_left_over
from pipelines.versions.stores import Stores
from pipelines.versions.version_scans import describe, readable_versions
from pipelines.warehouse.version_files import Version

BUILD: Final = "build"  # the lock of who changes versions or books


@contextmanager
def change_versions(stores: Stores) -> Iterator[None]:
    """Hold the lock `build` for the block; before and after it, rows of versions follow the files.

    Raises KeyboardInterrupt for a block that failed because this process is to stop.
    """
    with hold_lock(stores.metadata.locks, BUILD):
        remove_left_over(stores.settings.home, held="build")
        _match_rows_to_files(stores)
        try:
            stop.raise_if_requested()
            yield
        except Superseded:
            # Another process builds now. Rows and files are its own.
            raise
        except BaseException:
            _match_if_held(stores)
            # A signal ends the statement that runs, which then fails with an error of DuckDB.
            stop.raise_if_requested()
            raise
        _match_if_held(stores)


def _match_if_held(stores: Stores) -> None:
    # Where the lock was lost, another process may be changing rows and files.
    if stores.metadata.locks.holds(BUILD):
        _match_rows_to_files(stores)


def require_lock(stores: Stores) -> None:
    """Raise LockLost or Superseded if this process may not publish any more.

    Call it just before it publishes, or records what cannot be taken back.
    """
    stores.metadata.locks.require(BUILD)
    stores.warehouse.store.require_latest()


def _match_rows_to_files(stores: Stores) -> None:
    """Make the rows say what files and symlink say; delete files of builds that did not publish.

    A file without a row is kept: the metadata database may be older than the files. So is a file
    that has a row with a digest: it was published, and a person put it back after it was deleted.
    A lost symlink is made again, to the newest version without a scan that was rolled back.
    """
    stores.warehouse.store.refresh()
    published = stores.warehouse.published()
    files = {version.number: version for version in stores.warehouse.versions()}
    with stores.metadata.transaction() as session:
        rows = {row.number: row for row in session.scalars(select(VersionRow))}
    # Between the transactions, so that no other one waits for a digest.
    for number, version in files.items():
        if number not in rows:
            rows[number] = _row_of_found(stores, version)
        elif version == published and rows[number].sha256 is None:
            # It was published just now, or by a process that was killed then.
            rows[number].sha256 = _digest(version)
    with stores.metadata.transaction() as session:
        for number, row in rows.items():
            row.status = _status(row, has_file=number in files)
        session.add_all(rows.values())
    for number, version in files.items():
        if rows[number].status == VersionStatus.DELETED:
            stores.warehouse.drop(number)
        else:
            _record_content(stores, version, rows[number])
    if published is None:  # the symlink is lost, or nothing was built yet
        _publish_again(stores)


def _row_of_found(stores: Stores, version: Version) -> VersionRow:
    """Return a row for a file that has none."""
    now = stores.clock.utc_now()
    row = VersionRow(number=version.number, created_at=now, note="Found without a row.")
    row.sha256 = _digest(version)
    return row


def _record_content(stores: Stores, version: Version, row: VersionRow) -> None:
    """Let the row of a version say what it holds, unless its file is not here or cannot be read."""
    if row.content is not None or not version.path.is_file():
        return
    with suppress(PartnerSyncError, duckdb.Error):
        content = describe(stores, version)
        with stores.metadata.transaction() as session:
            session.get_one(VersionRow, version.number).content = content


def _publish_again(stores: Stores) -> None:
    """Point the symlink to the newest version without a scan that was rolled back, if any."""
    with stores.metadata.transaction() as session:
        undone = set(session.scalars(select(Scan.scan_id).where(Scan.status.in_(SET_ASIDE))))
    for version, scans in reversed(readable_versions(stores).items()):
        if not scans & undone:
            link_version(stores, version)
            return


def link_version(stores: Stores, version: Version) -> None:
    """Swap the symlink, so that analysts see a version. Raises LockLost, StorageFailed."""
    require_lock(stores)
    stores.warehouse.link(version)


def _status(row: VersionRow, *, has_file: bool) -> VersionStatus:
    if has_file:
        return VersionStatus.PUBLISHED if row.sha256 else VersionStatus.DELETED
    was_published = row.status in {VersionStatus.PUBLISHED, VersionStatus.LOST}
    return VersionStatus.LOST if was_published else VersionStatus.DELETED


def drop_version(stores: Stores, number: int) -> None:
    """Delete the file of a version that is not published. Raises StorageFailed.

    Its row says so first: otherwise, after a kill, the file would be missed.
    """
    with stores.metadata.transaction() as session:
        session.get_one(VersionRow, number).status = VersionStatus.DELETED
    stores.warehouse.drop(number)


def require_unchanged(metadata: Metadata, version: Version) -> None:
    """Raise PartnerSyncError if a version's file is not the one that was published.

    A lost file passes, one that is not here, and one whose digest is not known. Reads the whole
    file.
    """
    # Other processes wait for a transaction, so the file is read after it.
    with metadata.transaction() as session:
        row = session.get(VersionRow, version.number)
    if row is None or row.sha256 is None or not version.path.is_file():
        return
    if _digest(version) == row.sha256:
        return
    if not version.store.get_again(version.path) or _digest(version) != row.sha256:
        raise PartnerSyncError(
            f"Version {version.number} was changed after it was published: {version.path} has "
            "another digest. Nothing is built on it. Analysts who open it see the changed file.",
            "Run `partner-sync versions rebuild`, or `partner-sync versions rollback "
            '--reason "..."`.',
        )


def _digest(version: Version) -> str:
    with version.file().open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
