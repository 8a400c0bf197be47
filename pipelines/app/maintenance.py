"""Work on the files of a home: verify them, delete old ones."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sqlalchemy import select

from pipelines.app.progress import Progress
from pipelines.app.session import AppSession
from pipelines.core.clock import utc_now
from pipelines.core.errors import ArchiveDamaged, ConfigurationError, PartnerSyncError
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan
from pipelines.publish import prune
from pipelines.publish.versions import require_unchanged
from pipelines.warehouse.duckdb_file import Version


def prune_files(
    session: AppSession, days: int | None, progress: Progress, *, dry_run: bool = False
) -> list[prune.Row]:
    """Delete scan files and versions that are older than so many days (None: the setting).

    Returns a row for each. Raises ConfigurationError where nothing says how many days.
    """
    days = days or session.settings.keep_days
    if not days:
        raise ConfigurationError(
            "Nothing says for how many days files are kept. Nothing was deleted.",
            "Set keep_days in settings.toml, or run `partner-sync prune --days 400`.",
        )
    before = utc_now(session.clock) - timedelta(days=days)
    return prune.prune(session, before, progress.note, dry_run=dry_run)


@dataclass(frozen=True)
class Verified:
    """How many files were compared with their digests, and what is wrong with which."""

    files: int
    damaged: list[PartnerSyncError]


def verify_files(session: AppSession) -> Verified:
    """Read every scan file and every version again; compare them with what was recorded of them."""
    with session.metadata.transaction() as db:
        scans = list(db.scalars(select(Scan).order_by(Scan.started_at)))
    published, versions = session.warehouse.published(), session.warehouse.versions()
    lost = [published] if published and published not in versions else []
    files: list[Scan | Version] = [
        each for each in scans if each.sha256 and each.status != ScanStatus.PRUNED
    ]
    files += lost + versions
    unknown = session.archive.unknown_files(scans)
    damaged: list[PartnerSyncError] = [_unknown_file(file) for file in unknown]
    for file in files:
        try:
            _verify(session, file)
        except PartnerSyncError as error:
            damaged.append(error)
    return Verified(len(files) + len(unknown), damaged)


def _unknown_file(file: Path) -> ArchiveDamaged:
    return ArchiveDamaged(
        f"Scan file {file} is not in the metadata database. It is not loaded by any build.",
        "Restore metadata.db from a backup, or move the file out of the archive.",
    )


def _verify(session: AppSession, file: Scan | Version) -> None:
    if isinstance(file, Scan):
        session.archive.open_sealed(file)
    else:
        require_unchanged(session.metadata, file)
        session.warehouse.open(file.number).close()
