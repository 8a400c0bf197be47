"""Rows of `versions` and version files, kept in step. The symlink says what is published."""

import hashlib
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb
from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.core.clock import utc_now
from pipelines.core.errors import BuildFailed, PartnerSyncError
from pipelines.metadata import decisions, runs
from pipelines.metadata import versions as rows
from pipelines.metadata.tables import FindingRow, Scan, VersionRow
from pipelines.metadata.versions import VersionFiles
from pipelines.publish.catalog import LiveRows
from pipelines.publish.stores import BuildStores
from pipelines.warehouse.protocol import Version, Warehouse

LOADED = "SELECT DISTINCT loads.scan_id FROM meta.loads AS loads"
LAST_DECISION = "SELECT coalesce(max(decisions.number), 0) FROM meta.decisions AS decisions"
NOT_SHOWN = "rollback"  # decides which version is published, not what is in one


@dataclass(frozen=True)
class Content:
    """What a version is made of: its scans, and the number of the newest decision it shows."""

    scans: frozenset[str] = frozenset()
    decision: int = 0


def read_content(warehouse: Warehouse, version: Version | None) -> Content:
    """Return what a version is made of; nothing without a version. Raises StorageFailed."""
    if version is None:
        return Content()
    with closing(warehouse.open(version.number)) as db:
        scans = frozenset(scan_id for (scan_id,) in db.execute(LOADED).fetchall())
        return Content(scans, db.execute(LAST_DECISION).fetchall()[0][0])


def is_decision_newer(session: Session, number: int) -> bool:
    """Return whether people decided something after a decision that changes a version."""
    return any(
        decision.number > number and decision.kind != NOT_SHOWN
        for decision in decisions.list_decisions(session)
    )


def scans_in_newest_readable(warehouse: Warehouse) -> frozenset[str]:
    """Return the scans of the published version, else of the newest version that can be read."""
    published = warehouse.published()
    candidates = [published, *reversed(warehouse.versions())] if published else []
    for version in candidates:
        try:
            return read_content(warehouse, version).scans
        except (PartnerSyncError, duckdb.Error):
            continue
    return frozenset()


def scans_by_id(session: Session, scan_ids: Iterable[str]) -> list[Scan]:
    """Return scans in the order in which builds load them."""
    chosen = select(Scan).where(Scan.scan_id.in_(list(scan_ids)))
    return list(session.scalars(chosen.order_by(Scan.started_at, Scan.scan_id)))


def file_digest(file: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def recorded_digest(session: Session, version: Version | None) -> str | None:
    """Return the SHA-256 that a version's file had when it was published; None if not known."""
    row = session.get(VersionRow, version.number) if version else None
    return row.sha256 if row else None


def require_digest(version: Version, sha256: str | None) -> None:
    """Raise BuildFailed if a version's file has another SHA-256; a lost file is refused later.

    Reads the whole file: call it outside a transaction, which other processes would wait for.
    """
    if sha256 is None or not version.path.is_file() or file_digest(version.path) == sha256:
        return
    raise BuildFailed(
        f"Version {version.number} was changed after it was published: {version.path} has another "
        "digest. Nothing is built on it. Analysts see the changed file.",
        "Run `partner-sync versions rebuild`, or `partner-sync versions rollback` to an older "
        "version.",
    )


def require_unchanged(session: Session, version: Version) -> None:
    """Raise BuildFailed if a version's file is not the one that was published."""
    require_digest(version, recorded_digest(session, version))


def live_rows(session: Session) -> LiveRows:
    """Return what the metadata database says now."""
    return LiveRows(
        runs=runs.recent_runs(session, limit=0),
        findings=session.scalars(select(FindingRow).order_by(FindingRow.first_seen)).all(),
        decisions=decisions.list_decisions(session),
        versions=rows.list_versions(session),
    )


def reconcile_versions(stores: BuildStores) -> None:
    """Make rows and files agree after a kill, a restored backup or a deleted file.

    The caller holds the lock `build`.
    """
    published = stores.warehouse.published()
    linked = published.number if published else None
    finished = {version.number for version in stores.warehouse.versions()}
    now = utc_now(stores.clock)
    with stores.metadata.transaction() as session:
        unwanted = rows.reconcile_versions(session, VersionFiles(finished, linked), now)
    for number in unwanted:
        stores.warehouse.drop(number)


def start_version(stores: BuildStores, base: Version | None, note: str) -> int:
    """Add a row `building`; return its number, one above the highest that was ever used."""
    files = {version.number for version in stores.warehouse.versions()}
    with stores.metadata.transaction() as session:
        number = rows.next_number(session, files)
        base_number = base.number if base else None
        row = rows.start_version(session, number, base_number, utc_now(stores.clock))
        row.note = note
    return number


def discard_version(stores: BuildStores, number: int) -> None:
    """Mark a version that was not finished."""
    with stores.metadata.transaction() as session:
        rows.delete_version(session, number)


def publish_version(stores: BuildStores, version: Version) -> None:
    """Swap the symlink, record it, and delete versions beyond `keep_versions`."""
    digest = file_digest(version.path)
    stores.warehouse.publish(version)
    with stores.metadata.transaction() as session:
        rows.publish_version(session, version.number, digest, utc_now(stores.clock))
    _drop_old_versions(stores, version)


def _drop_old_versions(stores: BuildStores, published: Version) -> None:
    """Delete the files of all but the newest `keep_versions` versions and the published one."""
    for version in stores.warehouse.versions()[: -stores.settings.keep_versions]:
        if version != published:
            stores.warehouse.drop(version.number)
            with stores.metadata.transaction() as session:
                rows.delete_version(session, version.number)
