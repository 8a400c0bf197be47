"""Work on the files of a home: verify them, delete old ones, erase records."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from sqlalchemy import select

from pipelines.app.session import AppSession
from pipelines.core.clock import utc_now
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan
from pipelines.publish import prune
from pipelines.publish.erase import erase
from pipelines.publish.reconciliation import read_closes
from pipelines.publish.versions import require_unchanged
from pipelines.reconcile.months import require_intact
from pipelines.warehouse.duckdb_file import Row, Version

__all__ = ["erase", "prune_files", "verify_files"]


def prune_files(session: AppSession, days: int | None, *, dry_run: bool = False) -> list[Row]:
    """Delete scan files and versions that are older than so many days (None: the setting).

    Returns a row for each. Raises ConfigurationError where nothing says how many days.
    """
    days = days or session.settings.keep_days
    if not days:
        raise ConfigurationError(
            "Neither --days nor the setting keep_days is given. Nothing was deleted.",
            "Set keep_days in settings.toml, or run `partner-sync prune --days 400`.",
        )
    before = utc_now(session.clock) - timedelta(days=days)
    return prune.prune(session, before, dry_run=dry_run)


def verify_files(session: AppSession) -> Row:
    """Read scan files, versions, copies of closed months and the metadata database whole.

    Returns how many `files` were read, and what is wrong with which: `damaged`.
    """
    with session.metadata.transaction() as db:
        scans = list(db.scalars(select(Scan).order_by(Scan.started_at)))
    versions = dict.fromkeys([session.warehouse.published(), *session.warehouse.versions()])
    readers: list[Callable[[], object]] = [session.metadata.verify]
    readers += [partial(_read_version, session, each) for each in versions if each]
    readers += [partial(require_intact, *each) for each in read_closes(session).items()]
    readers += [
        partial(session.archive.open_sealed, each)
        for each in scans
        if each.sha256 and each.status != ScanStatus.PRUNED
    ]
    damaged = [
        {
            "message": f"Scan file {file} is not in the metadata database. It is not loaded by any "
            "build.",
            "remedy": "Restore metadata.db from a backup, or move the file out of the archive.",
        }
        for file in session.archive.unknown_files(scans)
    ]
    files = len(readers) + len(damaged)
    for read in readers:
        try:
            read()
        except PartnerSyncError as error:
            damaged.append({"message": str(error), "remedy": error.remedy})
    return {"files": files, "damaged": damaged}


def _read_version(session: AppSession, version: Version) -> None:
    require_unchanged(session.metadata, version)
    session.warehouse.open(version.number).close()
