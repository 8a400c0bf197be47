"""Builds a version from the published one and the sealed scans that it does not hold."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

import duckdb
from sqlalchemy import select

from pipelines.config.streams import Stream
from pipelines.core.errors import (
    ArchiveDamaged,
    BuildFailed,
    LoadFailed,
    PartnerSyncError,
    StorageFailed,
)
from pipelines.core.text import printable
from pipelines.load.load import LoadPolicy, LoadResult, load_scan
from pipelines.metadata.scans import ScanStatus, buildable_scans, set_status
from pipelines.metadata.tables import Scan
from pipelines.publish import catalog, reconciliation, versions
from pipelines.publish.stores import OnNote, Stores
from pipelines.reconcile.engine import Inputs, reconcile
from pipelines.warehouse.duckdb_file import Version

# Nobody else writes: a transaction fails only where the disk or the memory limit refuses.
STORAGE_ERRORS: Final = (
    OSError,
    MemoryError,
    StorageFailed,
    duckdb.OperationalError,
    duckdb.FatalException,  # of every statement after a write that failed
)


@dataclass(frozen=True)
class BuildResult:
    """What a build did. `version` is the base where there was nothing new, None without any."""

    version: Version | None
    is_new: bool
    results: tuple[LoadResult, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)  # scan id -> reason


def build(stores: Stores, on_note: OnNote = lambda _note: None) -> BuildResult:
    """Build and publish a version of every scan that waits for one.

    Nothing new (no scan, no other mapping, no decision about breaks): return the base. A scan that
    is held is left out; so is one that fails, after which the build begins again.
    Raises LockHeld, BuildFailed and StorageFailed; the published version is then untouched.
    """
    with versions.change_versions(stores, on_note):
        base = stores.warehouse.published()
        loaded = versions.loaded_scans(stores.warehouse, base)
        with stores.metadata.transaction() as session:
            scans = buildable_scans(session, loaded)
        inputs = reconciliation.read_inputs(stores)
        is_outdated = base is not None and reconciliation.is_outdated(stores, base, inputs)
        return _Building(stores, on_note, base, inputs, is_outdated).run(scans)


def rebuild(stores: Stores, on_note: OnNote = lambda _note: None) -> BuildResult:
    """Build and publish a version from the scan files alone, without requests.

    It holds the scans of the published version, or of the newest one that can be read, and those
    that failed before; without such a version, what `build` would load. Its base is the checkpoint,
    if scans were pruned, else none. Raises BuildFailed where a scan cannot be loaded that was
    loaded before, or was pruned and is in no checkpoint; nothing is published then.
    """
    with versions.change_versions(stores, on_note):
        known = versions.scans_in_newest_readable(stores.warehouse)
        if base := versions.checkpoint(stores):
            versions.require_unchanged(stores.metadata, base)  # before any status changes
        held = versions.loaded_scans(stores.warehouse, base)
        with stores.metadata.transaction() as session:
            every = session.scalars(select(Scan).order_by(Scan.started_at, Scan.scan_id)).all()
            _require_all(known - held, every, is_based=base is not None)
            failed = {scan.scan_id for scan in every if scan.status == ScanStatus.FAILED}
            for scan_id in failed:
                set_status(session, scan_id, ScanStatus.SEALED)
            scans = [scan for scan in every if scan.scan_id in (known | failed) - held]
            if not known:
                scans = buildable_scans(session, known)
        if base and not scans:
            raise BuildFailed(
                f"Version {base.number} holds everything that is loaded. Nothing was rebuilt.",
                f"Run `partner-sync versions rollback` with number {base.number} to publish it.",
            )
        inputs = reconciliation.read_inputs(stores)
        inputs = replace(inputs, earlier=reconciliation.remembered(stores.warehouse))
        return _Building(stores, on_note, base, inputs, known=known).run(scans)


def _require_all(needed: frozenset[str], every: Sequence[Scan], *, is_based: bool) -> None:
    """Raise BuildFailed if scans that are needed besides the base cannot be loaded again."""
    if unknown := needed.difference(scan.scan_id for scan in every):
        raise BuildFailed(
            f"{len(unknown):,} scans of the published version are not in the metadata database: it "
            "was lost or is an old copy. Nothing was rebuilt.",
            "Restore metadata.db from a backup, then run `partner-sync versions rebuild`.",
        )
    lost = [scan for scan in every if scan.status == ScanStatus.PRUNED]
    if lost and not is_based:
        raise BuildFailed(
            f"{len(lost):,} scans of {lost[0].day} to {lost[-1].day} were pruned, and the version "
            "that was kept for them is lost or damaged. Nothing was rebuilt. Analysts still see "
            "the published version.",
            "Restore that version's file from a backup, then run `partner-sync versions rebuild`.",
        )


@contextmanager
def writing(
    stores: Stores, base: Version | None, note: str
) -> Iterator[tuple[int, duckdb.DuckDBPyConnection]]:
    """Yield the number of a new version and its tables, those of the base.

    Raises BuildFailed if the base was changed, and for what DuckDB refuses; StorageFailed.
    """
    if base:
        versions.require_unchanged(stores.metadata, base)
    number = versions.start_version(stores, base, note)
    try:
        with stores.warehouse.begin(base, number) as db:
            yield number, db
    except duckdb.Error as error:
        raise _not_built(number, error) from error


def finish(stores: Stores, db: duckdb.DuckDBPyConnection, inputs: Inputs) -> None:
    """Write what follows from the rows, and what the metadata database says now."""
    reconcile(db, inputs)
    catalog.write_state(db, stores.metadata)


@dataclass(frozen=True)
class _Building:
    """One build. `known` are scans that passed the guards in an earlier version.

    `is_outdated`: the base was reconciled with other inputs, so that no scan is needed.
    """

    stores: Stores
    on_note: OnNote
    base: Version | None
    inputs: Inputs
    is_outdated: bool = False
    known: frozenset[str] = frozenset()
    failed: dict[str, str] = field(default_factory=dict)  # scan id -> reason

    def run(self, scans: Sequence[Scan]) -> BuildResult:
        """Build; begin again without each scan that cannot be loaded."""
        while True:
            scans = [scan for scan in scans if scan.scan_id not in self.failed]
            if not scans and not self.is_outdated:
                return BuildResult(self.base, is_new=False, failed=self.failed)
            with suppress(LoadFailed):
                return self._attempt(scans)

    def _attempt(self, scans: Sequence[Scan]) -> BuildResult:
        """Build and publish a version, unless every scan is held. Raises LoadFailed."""
        lists = sorted({f"{scan.connection}/{scan.stream}" for scan in scans})
        note = "rebuilt from the archive" if self.known else ", ".join(lists) or "reconciled"
        version = None
        with writing(self.stores, self.base, note) as (number, db):
            results = tuple(self._load(db, number, scan) for scan in scans)
            if self.is_outdated or any(result.held is None for result in results):
                self.on_note(f"Version {number}: reconciling.")
                finish(self.stores, db, self.inputs)
                version = self.stores.warehouse.commit(db, number)
        if version is not None:
            versions.publish_version(self.stores, version)
        with self.stores.metadata.transaction() as session:
            for result in results:
                if result.held is not None:
                    set_status(session, result.scan_id, ScanStatus.HELD, result.held)
        return BuildResult(version or self.base, version is not None, results, self.failed)

    def _load(self, db: duckdb.DuckDBPyConnection, number: int, scan: Scan) -> LoadResult:
        """Load one scan. Raises LoadFailed, or StorageFailed for what is not the scan's fault."""
        self.on_note(f"Version {number}: loading {scan.connection}/{scan.stream} of {scan.day}.")
        stream = self.stores.settings.streams.get(scan.stream) or Stream.model_construct()
        policy = LoadPolicy(
            contract=stream.contract,
            max_deleted_share=stream.max_deleted_share,
            allow_empty=stream.allow_empty,
            approved=scan.status == ScanStatus.APPROVED or scan.scan_id in self.known,
        )
        try:
            sealed = self.stores.archive.open_sealed(scan)
            result = load_scan(db, sealed, policy)
            if result.held is None:
                catalog.add_scan(db, sealed, result.findings)
        except Exception as error:
            if isinstance(error.__cause__, KeyboardInterrupt):  # `change_versions` raises it again
                raise
            if _storage_error(error):
                raise _not_built(number, error) from error
            self._mark_failed(scan, error)
            # Whatever goes wrong with one scan must not hold back the others.
            raise LoadFailed(str(error)) from error
        return result

    def _mark_failed(self, scan: Scan, error: Exception) -> None:
        """Mark a scan as failed. Raises BuildFailed for one that an earlier version holds."""
        reason = str(error)
        if not isinstance(error, PartnerSyncError):
            reason = f"unexpected {type(error).__name__}: {printable(error)}"
        if scan.scan_id in self.known:
            raise BuildFailed(
                f"Scan {scan.scan_id} of {scan.connection}/{scan.stream} ({scan.day}) cannot be "
                f"loaded: {reason.rstrip('.')}. Nothing was rebuilt. Analysts still see the "
                "published version.",
                "Restore the scan file from a backup. Then run `partner-sync versions rebuild`.",
            ) from error
        self.failed[scan.scan_id] = reason
        with self.stores.metadata.transaction() as session:
            set_status(session, scan.scan_id, ScanStatus.FAILED, reason)


def _storage_error(error: BaseException | None) -> BaseException | None:
    """Return what the disk or the memory limit refused; None where the scan is to blame."""
    found = None
    while error is not None and not isinstance(error, ArchiveDamaged):
        found = error if isinstance(error, STORAGE_ERRORS) else found
        error = error.__cause__ or error.__context__
    return found


def _not_built(number: int, error: Exception) -> BuildFailed | StorageFailed:
    """Return the error for a version that could not be built."""
    refused = _storage_error(error)
    failure = StorageFailed if refused else BuildFailed
    return failure(
        f"Version {number} cannot be built: {printable(refused or error)}. Analysts still see the "
        "published version; the scans stay in the archive.",
        "Make room on the disk or raise memory_limit if that is the reason, then run "
        "`partner-sync versions build`.",
    )
