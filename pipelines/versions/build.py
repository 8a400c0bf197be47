"""Builds a version from the published one and the sealed scans that it does not hold."""

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import duckdb
from sqlalchemy import select

from pipelines.config.settings import Stream
from pipelines.core import stop
from pipelines.core.errors import NewerFormat, PartnerSyncError, UpgradeFailed
from pipelines.core.text import printable
from pipelines.load.load import LoadResult, create_tables, load_scan
from pipelines.load.older import read_older_rows
from pipelines.metadata.scans import ScanStatus, buildable_scans, set_status
from pipelines.metadata.tables import Scan
from pipelines.versions import catalog, change, publish, version_scans
from pipelines.versions.enough_memory import with_enough_memory
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Written
from pipelines.warehouse.formats import newest
from pipelines.warehouse.version_files import Version

# Checks show what the newest load of a list reported. What an earlier load of the build changed
# would never be said: once, that was 3,090 of 3,390 rows.
MOVE_FINDINGS: Final = """
UPDATE meta.load_findings AS reported SET scan_id = freshness.last_scan_id
FROM meta.freshness AS freshness
WHERE list_contains($scans::VARCHAR[], reported.scan_id)
    AND reported.code IN ('rows_changed', 'column_changed', 'names_are_data')
    AND (reported.connection, reported.stream) = (freshness.connection, freshness.stream)
"""
# A connection that is loaded for the first time has no row yet. `$all`: rows of every one changed.
WRITE_CONNECTIONS: Final = """
CREATE OR REPLACE TABLE meta.connections AS
SELECT
    loads.connection,
    if($all OR list_contains($written::VARCHAR[], loads.connection), $number, any_value(
        connections.version))::INTEGER AS version
FROM meta.loads AS loads
LEFT JOIN meta.connections AS connections USING (connection)
GROUP BY loads.connection
ORDER BY loads.connection
"""
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class BuildResult:
    """What a build did. `version` is the base where there was nothing new, None without any."""

    version: Version | None
    is_new: bool
    results: tuple[LoadResult, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)  # scan id -> reason


def build(stores: Stores, *, early: bool = False) -> BuildResult:
    """Build and publish a version of every scan that waits for one.

    Nothing new (no scan, no other format): return the base. A base that cannot be upgraded to the
    format of now is rebuilt from the archive. A scan that is held is left out, and so is one that
    cannot be loaded. Raises PartnerSyncError; the published version is then untouched.
    """
    with change.change_versions(stores):
        try:
            return _build(stores, early=early)
        except UpgradeFailed as error:
            logger.warning("%s It is rebuilt from the archive.", error)
            return _rebuild(stores)


def _build(stores: Stores, *, early: bool) -> BuildResult:
    base = stores.warehouse.published()
    loaded = version_scans.loaded_scans(stores, base)
    with stores.metadata.transaction() as session:
        scans = buildable_scans(session, loaded)
    is_old = base is not None and version_scans.format_of(stores, base) < newest()

    def write(stores: Stores) -> BuildResult:
        return _Building(stores, base, early=early).run(scans, is_old=is_old)

    return with_enough_memory(stores, write)


def rebuild(stores: Stores) -> BuildResult:
    """Build and publish a version from the scan files alone, without requests.

    It holds the scans of the published version, or of the one before if it cannot be read, and what
    `build` would load on it; scans that failed are tried again. Its base is the checkpoint, if
    scans were pruned, else none. Raises PartnerSyncError where a scan cannot be loaded that was
    loaded before, or was pruned and is in no checkpoint; nothing is published then.
    """
    with change.change_versions(stores):
        return _rebuild(stores)


def _rebuild(stores: Stores) -> BuildResult:
    known = version_scans.known_scans(stores)
    base = version_scans.checkpoint(stores)
    if base:
        change.require_unchanged(stores.metadata, base)
    needed = known - version_scans.loaded_scans(stores, base)
    with stores.metadata.transaction() as session:
        all_scans = session.scalars(select(Scan).order_by(Scan.started_at, Scan.scan_id)).all()
        _require_all(needed, all_scans, base)
        # Those that failed are tried again here, in the order in which all scans began: loaded
        # later, one would be loaded behind newer ones.
        for scan in all_scans:
            if scan.status == ScanStatus.FAILED:
                scan.status = ScanStatus.SEALED
        scans = [scan for scan in all_scans if scan.scan_id in needed]
        scans += buildable_scans(session, known)

    def write(stores: Stores) -> BuildResult:
        return _Building(stores, base, known=known).run(scans, is_old=bool(base))

    return with_enough_memory(stores, write)


def _require_all(needed: frozenset[str], scans: Sequence[Scan], base: Version | None) -> None:
    """Raise PartnerSyncError if scans that are needed besides the base cannot be loaded again.

    `scans` are all of the metadata database.
    """
    unknown = needed.difference(scan.scan_id for scan in scans)
    if unknown:
        raise PartnerSyncError(
            f"{len(unknown):,} scans of the published version are not in the metadata database: it "
            "was lost or is an old copy. Nothing was rebuilt.",
            "Restore metadata.db from a backup, then run `partner-sync versions rebuild`.",
        )
    pruned = [scan for scan in scans if scan.status == ScanStatus.PRUNED]
    if pruned and not base:
        raise PartnerSyncError(
            f"{len(pruned):,} scans of {pruned[0].day} to {pruned[-1].day} were pruned, and the "
            "checkpoint with their rows is lost, damaged or was rolled back. Nothing was rebuilt. "
            "Analysts still see the published version.",
            "Restore that version's file from a backup, then run `partner-sync versions rebuild`.",
        )


@dataclass(frozen=True)
class _Building:
    """One build. `known` are scans that passed the guards in an earlier version.

    The next version replaces one that is `early`.
    """

    stores: Stores
    base: Version | None
    known: frozenset[str] = frozenset()
    early: bool = False
    failed: dict[str, str] = field(default_factory=dict)  # scan id -> reason

    def run(self, scans: Sequence[Scan], *, is_old: bool = False) -> BuildResult:
        """Build and publish a version, if a scan is loaded or the base is of an older format."""
        if not scans and not is_old:
            return BuildResult(self.base, is_new=False)
        version = None
        note = self._note(scans)
        written_version = publish.write_version(self.stores, self.base, note, early=self.early)
        with written_version as (number, db):
            streams = self.stores.settings.streams
            older = read_older_rows(db, streams, declare=bool(self.known))
            results = self._load_all(db, number, scans)
            if is_old or any(result.held is None for result in results):
                written = _written(older, scans, results, is_old=is_old)
                _write_connections(db, number, written)
                self._describe(db, results)
                version = self.stores.warehouse.commit(db, number, written=written)
        if version is not None:
            publish.publish_version(self.stores, version)
        # After the version: a build that is killed before loads these scans again, and holds them.
        self._hold(results)
        return BuildResult(version or self.base, version is not None, results, self.failed)

    def _hold(self, results: Collection[LoadResult]) -> None:
        """Hold the scans that a guard stopped."""
        for result in results:
            if result.held is not None:
                self._set_status(result.scan_id, ScanStatus.HELD, result.held)

    def _note(self, scans: Sequence[Scan]) -> str:
        """Return why the version is built, for people."""
        if self.known:
            return "rebuilt from the archive"
        lists = {f"{scan.connection}/{scan.stream}" for scan in scans}
        return ", ".join(sorted(lists)) or "upgraded"

    def _load_all(
        self, db: duckdb.DuckDBPyConnection, number: int, scans: Sequence[Scan]
    ) -> tuple[LoadResult, ...]:
        """Load scans in their order; return the results of those that can be loaded."""
        create_tables(db)
        results = []
        for scan in scans:
            result = self._load(db, number, scan)
            if result is not None:
                results.append(result)
        return tuple(results)

    def _describe(self, db: duckdb.DuckDBPyConnection, results: Collection[LoadResult]) -> None:
        """Write what is known of the version besides its rows: schema `meta`, comments."""
        catalog.write_state(db, self.stores.metadata)
        # Scans that a rebuild loads again keep their findings.
        new_scans = {result.scan_id for result in results} - self.known
        db.execute(MOVE_FINDINGS, {"scans": [*new_scans]})

    def _load(self, db: duckdb.DuckDBPyConnection, number: int, scan: Scan) -> LoadResult | None:
        """Load one scan. None: it cannot be loaded, and the tables are as they were.

        Raises what is not the scan's fault.
        """
        logger.info(
            "Version %s: loading %s/%s of %s.", number, scan.connection, scan.stream, scan.day
        )
        stream = self.stores.settings.streams.get(scan.stream) or Stream.model_construct()
        approved = scan.status == ScanStatus.APPROVED or scan.scan_id in self.known
        try:
            sealed = self.stores.archive.open_sealed(scan)
            return load_scan(db, sealed, stream, approved=approved)
        except Exception as error:
            # A request to stop ends the statement, which then fails.
            stop.raise_if_requested()
            if publish.storage_error(error):  # `write_version` says what was refused
                raise
            # Whatever else goes wrong with one scan must not hold back the others.
            self._mark_failed(scan, error)
            return None

    def _mark_failed(self, scan: Scan, error: Exception) -> None:
        """Mark a scan as failed. Raises PartnerSyncError for one that an earlier version holds."""
        reason = str(error)
        if not isinstance(error, PartnerSyncError):
            reason = f"unexpected {type(error).__name__}: {printable(error)}"
        if scan.scan_id in self.known:
            raise PartnerSyncError(
                f"Scan {scan.scan_id} of {scan.connection}/{scan.stream} ({scan.day}) cannot be "
                f"loaded: {reason.rstrip('.')}. Nothing was rebuilt. Analysts still see the "
                "published version.",
                "Restore the scan file from a backup. Then run `partner-sync versions rebuild`.",
            ) from error
        self.failed[scan.scan_id] = reason
        if isinstance(error, NewerFormat):
            return  # the scan waits for the partner-sync that can read it
        self._set_status(scan.scan_id, ScanStatus.FAILED, reason)

    def _set_status(self, scan_id: str, status: ScanStatus, reason: str) -> None:
        with self.stores.metadata.transaction() as session:
            set_status(session, scan_id, status, reason)


def _written(
    older: set[str], scans: Iterable[Scan], results: Iterable[LoadResult], *, is_old: bool
) -> Written:
    """Return what a build wrote; `older` are tables whose rows were read again by other rules."""
    tables = older.copy()
    connections = set[str]()
    is_of_all = is_old or bool(older)
    connection_of = {scan.scan_id: scan.connection for scan in scans}
    for result in results:
        if result.held is None:
            tables.update(result.tables)
            connections.add(connection_of[result.scan_id])
            is_of_all |= result.rewrites
    return Written(tables, None if is_of_all else connections)


def _write_connections(db: duckdb.DuckDBPyConnection, number: int, written: Written) -> None:
    """Note the version in which the rows of each connection were last written.

    A load that finds nothing new counts: how a list ended is a row, too.
    """
    names = {"all": written.connections is None, "written": [*(written.connections or ())]}
    db.execute(WRITE_CONNECTIONS, {**names, "number": number})
