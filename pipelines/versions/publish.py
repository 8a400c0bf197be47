"""Here: a version is written and published, and the ones that it replaces are deleted.

Not here: what is written into it (build, erase), the way back (rollback), what `prune` deletes
(prune).
"""

from collections.abc import Iterator
from contextlib import contextmanager
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
)
from pipelines.core.text import printable
from pipelines.metadata.tables import VersionRow, VersionStatus
from pipelines.versions.change import change_versions, drop_version, link_version, require_unchanged
from pipelines.versions.stores import Stores
from pipelines.versions.version_scans import (
    checkpoint,
    has_newer_format,
    loaded_scans,
    readable_versions,
)
from pipelines.warehouse.books import BooksFolder, version_of_published_books
from pipelines.warehouse.memory_limit import is_memory_refused
from pipelines.warehouse.version_files import Version

# Nobody else writes: a transaction fails only where the disk or the memory limit refuses.
STORAGE_ERRORS: Final = (
    OSError,
    MemoryError,
    StorageFailed,
    duckdb.OperationalError,
    duckdb.FatalException,  # of every statement after a write that failed
)


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
    # For the last time: from here on, analysts see the version, and the sync ends as usual.
    stop.raise_if_requested()
    link_version(stores, version)
    drop_older(stores, version)


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


def _forget_lost(stores: Stores) -> None:
    """Miss no file any more of a version that is older than all that are kept."""
    oldest = min(version.number for version in stores.warehouse.versions())
    lost = update(VersionRow).filter_by(status=VersionStatus.LOST)
    with stores.metadata.transaction() as session:
        session.execute(lost.where(VersionRow.number < oldest).values(status=VersionStatus.DELETED))


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
