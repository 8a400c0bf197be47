"""Here: a version is published, rolled back to, and deleted; rows of `versions` follow the files.

The symlink says what is published. Not here: what a version is made of (build), its file
(warehouse.version_files), which scans it holds (version_scans), what `prune` deletes (prune).
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import duckdb
from sqlalchemy import func, select, update

from pipelines.core import stop
from pipelines.core.errors import (
    ArchiveDamaged,
    LoadFailed,
    MemoryRefused,
    PartnerSyncError,
    StorageFailed,
    Superseded,
)
from pipelines.core.text import printable
from pipelines.metadata.decisions import add_decision
from pipelines.metadata.engine import Metadata
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.scans import SET_ASIDE, ScanStatus
from pipelines.metadata.tables import Scan, VersionRow, VersionStatus
from pipelines.versions.left_over import remove_left_over
from pipelines.versions.stores import Stores
from pipelines.versions.version_scans import (
    checkpoint,
    describe,
    has_newer_format,
    loaded_scans,
    previous_versions,
    readable_versions,
)
from pipelines.warehouse.books import BooksFolder, version_of_published_books
from pipelines.warehouse.memory_limit import is_memory_refused
from pipelines.warehouse.version_files import Version

BUILD: Final = "build"  # the lock of who changes versions or books
# Nobody else writes: a transaction fails only where the disk or the memory limit refuses.
STORAGE_ERRORS: Final = (
    OSError,
    MemoryError,
    StorageFailed,
    duckdb.OperationalError,
    duckdb.FatalException,  # of every statement after a write that failed
)


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
        _settle(stores, version, rows[number])
    if published is None:  # the symlink is lost, or nothing was built yet
        _publish_again(stores)


def _row_of_found(stores: Stores, version: Version) -> VersionRow:
    """Return a row for a file that has none."""
    now = stores.clock.utc_now()
    row = VersionRow(number=version.number, created_at=now, note="Found without a row.")
    row.sha256 = _digest(version)
    return row


def _settle(stores: Stores, version: Version, row: VersionRow) -> None:
    """Delete a version that was not published; let the row of another one say what it holds.

    That is not recorded if its file is not here or cannot be read.
    """
    if row.status == VersionStatus.DELETED:
        stores.warehouse.drop(version.number)
        return
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
            _link(stores, version)
            return


def _link(stores: Stores, version: Version) -> None:
    """Let analysts see a version. Raises LockLost, StorageFailed."""
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


def _forget_lost(stores: Stores) -> None:
    """Miss no file any more of a version that is older than all that are kept."""
    oldest = min(version.number for version in stores.warehouse.versions())
    lost = update(VersionRow).filter_by(status=VersionStatus.LOST)
    with stores.metadata.transaction() as session:
        session.execute(lost.where(VersionRow.number < oldest).values(status=VersionStatus.DELETED))


@contextmanager
def write_version(
    stores: Stores, base: Version | None, note: str, *, early: bool = False
) -> Iterator[tuple[int, duckdb.DuckDBPyConnection]]:
    """Yield the number of a new version, above all that were ever used, and the base's tables.

    Raises PartnerSyncError if the base was changed, and for what DuckDB or the disk refuses.
    """
    if base:
        base.file()
        require_unchanged(stores.metadata, base)
    row = VersionRow(number=1, created_at=stores.clock.utc_now(), note=note, is_early=early)
    row.base = base.number if base else None
    with stores.metadata.transaction() as session:
        # No number is used again: what finance remembers names versions that were deleted.
        row.number += session.scalar(select(func.max(VersionRow.number))) or 0
        session.add(row)
    try:
        with stores.warehouse.begin(base, row.number) as db:
            yield row.number, db
    except (duckdb.Error, OSError, MemoryError, LoadFailed) as error:
        if is_memory_refused(error):
            raise MemoryRefused(
                f"Version {row.number} cannot be built: DuckDB needs more memory than it may use "
                f"(memory_limit, now {stores.warehouse.memory_limit.text}). Analysts still see the "
                "published version; the scans stay in the archive.",
                "Set a larger memory_limit in settings.toml, then run `partner-sync versions "
                "build`.",
            ) from error
        raise PartnerSyncError(
            f"Version {row.number} cannot be built: {printable(storage_error(error) or error)}. "
            "Analysts still see the published version; the scans stay in the archive.",
            "Make room on the disk if that is the reason, then run `partner-sync versions build`.",
        ) from error


def storage_error(error: BaseException | None) -> BaseException | None:
    """Return what the disk or the memory limit refused; None where the scan is to blame."""
    refused = None
    while error is not None and not isinstance(error, ArchiveDamaged):
        if isinstance(error, STORAGE_ERRORS):
            refused = error  # the last one in the chain was the first to be raised
        error = error.__cause__ or error.__context__
    return refused


def publish_version(stores: Stores, version: Version) -> None:
    """Swap the symlink to a new version, then delete older ones."""
    link_version(stores, version)
    drop_older(stores, version)


def link_version(stores: Stores, version: Version) -> None:
    """Swap the symlink to a new version."""
    # For the last time: from here on, analysts see the version, and the sync ends as usual.
    stop.raise_if_requested()
    _link(stores, version)


def drop_older(stores: Stores, version: Version) -> None:
    """Delete the versions that need not stay beside the published one.

    What stays: the newest `keep_versions`, the checkpoint, and the version of the published books.
    Early versions do not count: they take no place of those that a rollback may need.
    Versions with other scans than the new one were rolled back: they all go, and so do those that
    cannot be read. So each version that stays holds the scans of the one before.
    """
    _drop_others(stores, version)
    _forget_lost(stores)


def _drop_others(stores: Stores, published: Version) -> None:
    """Delete the versions that need not stay beside a new one."""
    newest_scans = loaded_scans(stores, published)
    readable = readable_versions(stores)
    keeper = checkpoint(stores)
    of_books = version_of_published_books(stores.warehouse)
    early = _early_versions(stores) - {published.number}
    kept = 0
    for version in reversed(stores.warehouse.versions()):
        if has_newer_format(stores, version):
            # It is for the partner-sync that wrote it.
            continue
        scans = readable.get(version)
        # Versions never branch. Until this one was built, the rollback could be taken back.
        was_rolled_back = scans is not None and not scans <= newest_scans
        if was_rolled_back:
            # Since the rollback, no books of the older version could be made.
            if version.number == of_books:
                BooksFolder(stores.warehouse).drop_all()
            drop_version(stores, version.number)
        elif (
            scans is not None
            and version.number not in early
            and kept < stores.settings.keep_versions
        ):
            kept += 1
        elif version != keeper and version.number != of_books:
            drop_version(stores, version.number)


def _early_versions(stores: Stores) -> set[int]:
    early = select(VersionRow.number).filter_by(is_early=True, status=VersionStatus.PUBLISHED)
    with stores.metadata.transaction() as session:
        return set(session.scalars(early))


def drop_replaced(stores: Stores) -> None:
    """Delete early versions that a later version, and its books, have replaced."""
    if not _early_versions(stores):
        return
    with change_versions(stores):
        published = stores.warehouse.published()
        needed = {version_of_published_books(stores.warehouse)}
        if published is not None:
            needed.add(published.number)
        for number in _early_versions(stores) - needed:
            drop_version(stores, number)


def rollback(stores: Stores, number: int | None, reason: str) -> str:
    """Publish an older version (None: the newest with older data) again; return what changed.

    Every scan that it lacks and another version has is held, before the link is swapped: after a
    kill in between, analysts see the newer version until the command is run again, and no build
    undoes the decision. Raises PartnerSyncError where the version is not kept or the file was
    changed, LockHeld, StorageFailed.
    """
    if number is None:
        number = _number_before(stores)
    with change_versions(stores):
        version = _kept_version(stores, number)
        require_unchanged(stores.metadata, version)
        _set_scans_aside(stores, version, reason)
        _link(stores, version)
    return (
        f"Analysts now see version {number}. Scans that it does not contain are held: "
        "`partner-sync status` shows the newest of each list, `partner-sync approve` loads it. The "
        "next build deletes the versions that contain them."
    )


def _number_before(stores: Stores) -> int:
    """Return the newest version with older data than the published one. Raises PartnerSyncError."""
    published = stores.warehouse.published()
    older = previous_versions(stores, published) if published else []
    if not older:
        raise PartnerSyncError(
            "There is no older version of the data. Nothing was changed.",
            "Run `partner-sync versions list` to see which versions are kept.",
        )
    return older[0].number


def _kept_version(stores: Stores, number: int) -> Version:
    """Return a version that is kept. Raises PartnerSyncError for another number."""
    kept = {version.number: version for version in stores.warehouse.versions()}
    if number not in kept:
        raise PartnerSyncError(
            f"Version {number} is not kept (kept: {', '.join(map(str, kept)) or 'none'}). "
            "Nothing was changed.",
            "Run `partner-sync versions list`, then choose one of these.",
        )
    return kept[number]


def _set_scans_aside(stores: Stores, version: Version, reason: str) -> None:
    """Hold the scans that only other versions have, and record the decision.

    A scan of the version that an earlier rollback held waits for a build again.
    """
    contained = loaded_scans(stores, version)
    in_versions = frozenset[str]().union(*readable_versions(stores).values())
    undone = in_versions - contained
    with stores.metadata.transaction() as session:
        add_decision(session, stores.decision("rollback", str(version.number), reason))
        for scan in session.scalars(select(Scan)).all():
            is_aside = scan.status in SET_ASIDE
            if scan.scan_id in undone and not is_aside and scan.status != ScanStatus.PRUNED:
                scan.status = ScanStatus.HELD
                scan.reason = f"rolled back to version {version.number}: {reason}"
            elif scan.scan_id in contained and is_aside:  # by an earlier rollback
                scan.status = ScanStatus.SEALED
                scan.reason = None


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
