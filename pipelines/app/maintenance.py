"""Here: work on versions and files: list and verify them, delete old ones, roll back, erase.

Not here: what a night does (nightly), decisions about held scans (held_scans).
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

from sqlalchemy import select

from pipelines import finance
from pipelines.app.session import AppSession
from pipelines.core import stop
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.finance import books_state, remembered
from pipelines.finance.books import BooksResult, make_only_books, try_books
from pipelines.finance.closing.holding import configuration_with, copies_with, remarks_with
from pipelines.finance.inputs import read_copies
from pipelines.finance.reconcile.close_copy import require_intact
from pipelines.metadata import scans
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan, VersionRow, VersionStatus
from pipelines.versions import erase, prune
from pipelines.versions.change import change_versions, require_unchanged
from pipelines.versions.erase import ErasureRequest, ErasureSteps, NothingFound
from pipelines.versions.left_over import left_over
from pipelines.versions.rollback import roll_back
from pipelines.versions.search import SearchResult
from pipelines.versions.version_scans import checkpoint
from pipelines.warehouse.books import BooksFolder
from pipelines.warehouse.duckdb_file import Row
from pipelines.warehouse.version_files import Version

WITH_FILE = (VersionStatus.PUBLISHED, VersionStatus.LOST)  # of a version that should have one
__all__ = [
    "ErasureRequest", "NothingFound", "configuration_with", "copies_with", "erase_records",
    "list_versions", "prune_files", "remarks_with", "rollback", "verify_files",
]  # fmt: skip
# Share of the scan files. To delete more suggests a wrong --days, or wrong dates.
MOST_PRUNED = 0.5


def prune_files(
    session: AppSession, days: int | None, *, dry_run: bool = False, force: bool = False
) -> list[Row]:
    """Delete scan files and versions that are so many days (None: the setting) older than now.

    "Now" is the newest scan: a clock that is ahead would make everything old. Returns a row for
    each. Raises ConfigurationError where nothing says how many days, and without `force` if most
    files would be deleted.
    """
    days = days or session.settings.keep_days
    if not days:
        raise ConfigurationError(
            "Neither --days nor the setting keep_days is given. Nothing was deleted.",
            "Set keep_days in settings.toml, or run `partner-sync prune --days 400`.",
        )
    with session.metadata.transaction() as db:
        newest = scans.newest_start(db) or session.clock.utc_now()
    before = min(newest, session.clock.utc_now()) - timedelta(days=days)
    # A dry run is how it is counted what would be deleted.
    old = prune.prune(session, before, dry_run=True)
    if dry_run or not old:
        return old
    if not force:
        _refuse_most(session, old, days)
    return prune.prune(session, before)


def _refuse_most(session: AppSession, old: list[Row], days: int) -> None:
    """Raise ConfigurationError if a prune would delete more than half of the scan files."""
    with session.metadata.transaction() as db:
        known = db.scalars(select(Scan).where(Scan.status != ScanStatus.PRUNED)).all()
    pruned = sum(row["kind"] == "scan" for row in old)
    if pruned > len(known) * MOST_PRUNED:
        raise ConfigurationError(
            f"{pruned:,} of {len(known):,} scan files are more than {days:,} days older than the "
            "newest one. Nothing was deleted.",
            "Check the dates: the option --dry-run shows what would be deleted. To delete it, add "
            "--force.",
        )


def verify_files(session: AppSession) -> Row:
    """Read scan files, versions, copies of closed months and the metadata database whole.

    Returns how many `files` were read, and what is wrong with which: `damaged`. Files that are
    missing, unknown, or left by killed processes are among them.
    """
    with session.metadata.transaction() as db:
        known = list(db.scalars(select(Scan).order_by(Scan.started_at)))
    readers = _readers(session, known)
    damaged = [_unknown_file(file) for file in session.archive.unknown_files(known)]
    damaged += _lost_versions(session)
    damaged += [_left_over(path) for path in left_over(session.home)]
    # What is damaged so far is in no reader; what a reader finds is one of its files.
    files = len(readers) + len(damaged)
    for read in readers:
        stop.raise_if_requested()
        try:
            read()
        except PartnerSyncError as error:
            damaged.append({"message": str(error), "remedy": error.remedy})
    return {"files": files, "damaged": damaged}


def _readers(session: AppSession, known: Sequence[Scan]) -> list[Callable[[], object]]:
    """Return functions that each read a file whole. They raise PartnerSyncError if it is damaged.

    Published files are among them also if they are gone, so that this is noticed.
    """
    readers: list[Callable[[], object]] = [session.metadata.verify]
    warehouse = session.warehouse
    versions = dict.fromkeys([warehouse.published(), *warehouse.versions()])
    readers += [partial(_read_version, session, version) for version in versions if version]
    folder = BooksFolder(warehouse)
    all_books = dict.fromkeys([folder.published(), *folder.every()])
    readers += [
        partial(books_state.require_unchanged, session, books) for books in all_books if books
    ]
    for copy_folder, close in read_copies(session).items():
        readers.append(partial(require_intact, copy_folder, close))
    kept_scans = [scan for scan in known if scan.sha256 and scan.status != ScanStatus.PRUNED]
    readers += [partial(session.archive.open_sealed, scan) for scan in kept_scans]
    return readers


def _unknown_file(file: Path) -> Row:
    return {
        "message": f"Scan file {file} is not in the metadata database. It is not loaded by any "
        "build.",
        "remedy": "Restore metadata.db from a backup, or move the file out of the archive.",
    }


def _lost_versions(session: AppSession) -> Iterator[Row]:
    """Yield what is wrong with versions that were published and have no file.

    Not with the published one: reading it says so.
    """
    expected = select(VersionRow.number).where(VersionRow.status.in_(WITH_FILE))
    with session.metadata.transaction() as db:
        numbers = set(db.scalars(expected))
    for version in session.warehouse.versions():
        numbers.discard(version.number)
    published = session.warehouse.published()
    if published is not None:
        numbers.discard(published.number)
    for number in sorted(numbers):
        yield {
            "message": f"Version {number} has no file: {session.warehouse.version(number).path} "
            "was deleted, but not by partner-sync. Analysts still see the published version; "
            f"nobody can roll back to version {number}.",
            "remedy": "Restore the file from a backup. It is missed until all versions that are "
            "kept are newer.",
        }


def _left_over(path: Path) -> Row:
    return {
        "message": f"{path} was left by a process that was killed. It is in no version, close, "
        "report or export.",
        "remedy": "Run `partner-sync sync`, which deletes it.",
    }


def _read_version(session: AppSession, version: Version) -> None:
    require_unchanged(session.metadata, version)
    with session.warehouse.open(version.number):
        pass  # to open it reads its totals and compares them


def list_versions(session: AppSession) -> list[Row]:
    """Return the versions whose files exist, newest first. `content` names the checkpoint."""
    published = session.warehouse.published()
    rebuild_base = checkpoint(session)
    with session.metadata.transaction() as db:
        known = {row.number: row for row in db.query(VersionRow)}
    rows = list[Row]()
    for version, size in reversed(session.warehouse.sizes().items()):
        row = known.get(version.number)
        content = row.note if row else ""
        if version == rebuild_base:
            content += " (checkpoint)"
        rows.append(
            {
                "version": version.number,
                "published": version == published,
                "bytes": size,
                "created_at": row and row.created_at,
                "content": content,
            }
        )
    return rows


def rollback(session: AppSession, number: int | None, reason: str) -> str:
    """Publish an older version, and books of it; return what changed. Raises PartnerSyncError."""
    changed = roll_back(session, number, reason)
    books = try_books(session)
    return f"{changed} {books.problem} {books.remedy}".strip()


def erase_records(
    session: AppSession,
    request: ErasureRequest,
    show: Callable[[SearchResult], object],
    confirm: Callable[[], object],
) -> list[Row]:
    """Erase records as `versions.erase` does, and make books without them.

    Statements for partners go first, so that a command that was killed finds the value again.
    """
    statements = list[Row]()
    made = list[BooksResult]()

    def confirm_and_begin() -> None:
        confirm()
        for file in finance.statement.erase_statements(session, request.text):
            statements.append({"file": str(file), "records": None})

    def replace_books() -> None:
        made.append(make_only_books(session))

    with change_versions(session):
        remembered.follow_published(session)
    beside = finance.own_books.kept_with(session, request.text)
    beside += finance.statement.kept_with(session, request.text)
    steps = ErasureSteps(show, confirm_and_begin, replace_books)
    erased = erase.erase(session, request, steps, beside)
    for books in made:
        if books.problem:
            raise PartnerSyncError(
                f"The records are erased, but there are no books: {books.problem}", books.remedy
            )
    return [*{row["file"]: row for row in (*erased, *statements)}.values()]
