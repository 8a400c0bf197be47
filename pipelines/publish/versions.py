"""Rows of `versions` and version files, kept in step. The symlink says what is published."""

import hashlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Final

import duckdb
from sqlalchemy import func, select, update

from pipelines.core import stop
from pipelines.core.errors import (
    ArchiveDamaged,
    LoadFailed,
    MemoryRefused,
    NewerFormat,
    PartnerSyncError,
    StorageFailed,
)
from pipelines.core.text import printable
from pipelines.metadata.decisions import add_decision
from pipelines.metadata.engine import Metadata
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.scans import SET_ASIDE, ScanStatus
from pipelines.metadata.tables import Scan, VersionRow, VersionStatus
from pipelines.publish.left_over import remove_left_over
from pipelines.publish.stores import Stores
from pipelines.warehouse.books import BooksFolder, version_of_published_books
from pipelines.warehouse.formats import read_format
from pipelines.warehouse.memory_limit import is_memory_refused
from pipelines.warehouse.version_files import Version, Warehouse

LOADED = "SELECT loads.scan_id FROM meta.loads AS loads"
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
    with hold_lock(stores.metadata.locks, "build"):
        remove_left_over(stores.settings.home)
        _match_rows_to_files(stores)
        try:
            stop.raise_if_requested()
            yield
        except BaseException:
            stop.raise_if_requested()
            raise
        finally:
            _match_rows_to_files(stores)


def _match_rows_to_files(stores: Stores) -> None:
    """Make the rows say what files and symlink say; delete files of builds that did not publish.

    A file without a row is kept: the metadata database may be older than the files. So is a file
    that has a row with a digest: it was published, and a person put it back after it was deleted.
    A lost symlink is made again, to the newest version without a scan that was rolled back.
    """
    published = stores.warehouse.published()
    files = {version.number: version for version in stores.warehouse.versions()}
    with stores.metadata.transaction() as session:
        rows = {row.number: row for row in session.scalars(select(VersionRow))}
        undone = set(session.scalars(select(Scan.scan_id).where(Scan.status.in_(SET_ASIDE))))
    for number, version in files.items():
        found = VersionRow(number=number, created_at=stores.clock.utc_now())
        found.note = "Found without a row."
        row = rows.setdefault(number, found)
        if row is found or version == published:  # no transaction waits for the digest
            row.sha256 = row.sha256 or _digest(version)
    with stores.metadata.transaction() as session:
        for number, row in rows.items():
            row.status = _status(row, has_file=number in files)
        session.add_all(rows.values())
    for number in files:
        if rows[number].status == VersionStatus.DELETED:
            stores.warehouse.drop(number)
    if published is None:  # the link is lost, or nothing was built yet
        readable = readable_versions(stores.warehouse)
        able = [each for each, scans in readable.items() if not scans & undone]
        if able:
            stores.warehouse.publish(able[-1])


def _status(row: VersionRow, *, has_file: bool) -> VersionStatus:
    if has_file:
        return VersionStatus.PUBLISHED if row.sha256 else VersionStatus.DELETED
    was_there = row.status in {VersionStatus.PUBLISHED, VersionStatus.LOST}
    return VersionStatus.LOST if was_there else VersionStatus.DELETED


def drop_version(stores: Stores, number: int) -> None:
    """Delete the file of a version that is not published. Raises StorageFailed.

    Its row says so first: otherwise, after a kill, the file would be missed.
    """
    with stores.metadata.transaction() as session:
        session.get_one(VersionRow, number).status = VersionStatus.DELETED
    stores.warehouse.drop(number)


def _forget_lost(stores: Stores) -> None:
    """Miss no file any more of a version that is older than all that are kept."""
    oldest = min(each.number for each in stores.warehouse.versions())
    lost = update(VersionRow).filter_by(status=VersionStatus.LOST)
    with stores.metadata.transaction() as session:
        session.execute(lost.where(VersionRow.number < oldest).values(status=VersionStatus.DELETED))


@contextmanager
def write_version(
    stores: Stores, base: Version | None, note: str
) -> Iterator[tuple[int, duckdb.DuckDBPyConnection]]:
    """Yield the number of a new version, above all that were ever used, and the base's tables.

    Raises PartnerSyncError if the base was changed, and for what DuckDB or the disk refuses.
    """
    if base:
        require_unchanged(stores.metadata, base)
    row = VersionRow(number=1, created_at=stores.clock.utc_now(), note=note)
    row.base = base.number if base else None
    with stores.metadata.transaction() as session:
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
    found = None
    while error is not None and not isinstance(error, ArchiveDamaged):
        found = error if isinstance(error, STORAGE_ERRORS) else found
        error = error.__cause__ or error.__context__
    return found


def publish_version(stores: Stores, version: Version, without: Collection[Version] = ()) -> None:
    """Swap the symlink to a new version; delete older ones, and those in `without`.

    What stays: the newest `keep_versions`, the checkpoint, and the version of the published books.
    Versions with other scans than the new one were rolled back: they all go, and so do those that
    cannot be read. So each version that stays holds the scans of the one before.
    """
    stop.raise_if_requested()  # for the last time: from here on, analysts see the version
    stores.warehouse.publish(version)
    for each in without:
        drop_version(stores, each.number)
    newest = loaded_scans(stores.warehouse, version)
    readable = readable_versions(stores.warehouse)
    keeper = checkpoint(stores)
    of_books = version_of_published_books(stores.warehouse)
    kept = 0
    for each in reversed(stores.warehouse.versions()):
        scans = readable.get(each)
        if has_newer_format(stores.warehouse, each):
            continue  # it is for the partner-sync that wrote it
        if scans is not None and not scans <= newest:
            if each.number == of_books:  # which could not be made since the rollback
                BooksFolder(stores.warehouse).drop_all()
            drop_version(stores, each.number)
        elif scans is not None and kept < stores.settings.keep_versions:
            kept += 1
        elif each != keeper and each.number != of_books:
            drop_version(stores, each.number)
    _forget_lost(stores)


def previous_versions(stores: Stores, version: Version) -> list[Version]:
    """Return the older versions that hold a part of the scans of a version, newest first.

    Any older one, if `version` cannot be read.
    """
    readable = readable_versions(stores.warehouse)
    newest = readable.get(version)
    older = [each for each in reversed(readable) if each.number < version.number]
    return [each for each in older if newest is None or readable[each] < newest]


def rollback(stores: Stores, number: int | None, reason: str) -> str:
    """Publish an older version (None: the newest with older data) again; return what changed.

    Every scan that it lacks and another version has is held, before the link is swapped: after a
    kill in between, analysts see the newer version until the command is run again, and no build
    undoes the decision. Raises PartnerSyncError where the version is not kept or the file was
    changed, LockHeld, StorageFailed.
    """
    if number is None and (published := stores.warehouse.published()):
        older = previous_versions(stores, published)
        number = next((each.number for each in older), None)
    if number is None:
        raise PartnerSyncError(
            "There is no older version of the data. Nothing was changed.",
            "Run `partner-sync versions list` to see which versions are kept.",
        )
    with change_versions(stores):
        kept = {version.number: version for version in stores.warehouse.versions()}
        if number not in kept:
            raise PartnerSyncError(
                f"Version {number} is not kept (kept: {', '.join(map(str, kept)) or 'none'}). "
                "Nothing was changed.",
                "Run `partner-sync versions list`, then choose one of these.",
            )
        require_unchanged(stores.metadata, kept[number])
        contained = loaded_scans(stores.warehouse, kept[number])
        undone = frozenset[str]().union(*readable_versions(stores.warehouse).values()) - contained
        why = f"rolled back to version {number}: {reason}"
        with stores.metadata.transaction() as session:
            add_decision(session, stores.decision("rollback", str(number), reason))
            for scan in session.scalars(select(Scan)).all():
                is_aside = scan.status in SET_ASIDE
                if scan.scan_id in undone and not is_aside and scan.status != ScanStatus.PRUNED:
                    scan.status, scan.reason = ScanStatus.HELD, why
                elif scan.scan_id in contained and is_aside:  # by an earlier rollback
                    scan.status, scan.reason = ScanStatus.SEALED, None
        stores.warehouse.publish(kept[number])
    return (
        f"Analysts now see version {number}. Scans that it does not contain are held: "
        "`partner-sync status` shows the newest of each list, `partner-sync approve` loads it. The "
        "next build deletes the versions that contain them."
    )


def checkpoint(stores: Stores) -> Version | None:
    """Return the version from which a rebuild starts: the oldest that holds every pruned scan.

    None, if none was pruned, or none holds them all without one that was rolled back.
    """
    with stores.metadata.transaction() as session:
        found = session.scalars(select(Scan.scan_id).filter_by(status=ScanStatus.PRUNED))
        pruned = frozenset(found)
    readable, known = readable_versions(stores.warehouse), known_scans(stores)
    able = (each for each, scans in readable.items() if pruned <= scans <= known)
    return next(able, None) if pruned else None


def loaded_scans(warehouse: Warehouse, version: Version | None) -> frozenset[str]:
    """Return the scans that a version holds. Raises PartnerSyncError."""
    if version is None:
        return frozenset()
    state = version.file().stat()
    return _loaded_scans(warehouse, version.number, (state.st_ino, state.st_mtime_ns))


@lru_cache
def _loaded_scans(warehouse: Warehouse, number: int, _state: tuple[int, int]) -> frozenset[str]:
    """Return the scans that a version holds, once for each state of its file: opening costs."""
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
    readable = readable_versions(stores.warehouse)
    known = [readable[each] for each in readable if published and each.number <= published.number]
    return known[-1] if known else frozenset()


def require_unchanged(metadata: Metadata, version: Version) -> None:
    """Raise PartnerSyncError if a version's file is not the one that was published.

    A lost file, and one whose digest is not known, pass. Reads the whole file.
    """
    with metadata.transaction() as session:  # which others wait for: the file is read after it
        row = session.get(VersionRow, version.number)
    known = row and version.path.is_file() and row.sha256
    if known and _digest(version) != known:
        raise PartnerSyncError(
            f"Version {version.number} was changed after it was published: {version.path} has "
            "another digest. Nothing is built on it. Analysts who open it see the changed file.",
            "Run `partner-sync versions rebuild`, or `partner-sync versions rollback "
            '--reason "..."`.',
        )


def _digest(version: Version) -> str:
    with version.path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
