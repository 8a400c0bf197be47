"""Builds version N+1 from version N and the sealed scans that it does not hold."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import duckdb
from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.config.streams import Stream
from pipelines.core.errors import (
    ArchiveDamaged,
    BuildFailed,
    PartnerSyncError,
    ScanNotFound,
    StorageFailed,
)
from pipelines.core.text import printable
from pipelines.load.load import LoadPolicy, LoadResult, load_scan
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.scans import ScanStatus, buildable_scans, set_status
from pipelines.metadata.tables import Scan
from pipelines.publish import catalog, versions
from pipelines.publish.stores import BuildStores, OnNote, ignore_note
from pipelines.publish.verify import control_totals, require_totals
from pipelines.warehouse.protocol import Build, Version

BUILD_LOCK: Final = "build"
# A commit that cannot be written is a TransactionException; nobody else writes, so no conflict is.
STORAGE_ERRORS: Final = (
    OSError,
    StorageFailed,
    duckdb.FatalException,  # of every statement after a write that failed
    duckdb.IOException,
    MemoryError,
    duckdb.OutOfMemoryException,
    duckdb.TransactionException,
)


@dataclass(frozen=True)
class BuildResult:
    """What a build did. `version` is the base where there was nothing new, None without any."""

    version: Version | None
    is_new: bool
    results: tuple[LoadResult, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)  # scan id -> reason


@dataclass(frozen=True)
class _Plan:
    """What a version is made of. `known` are scans that passed the guards in an earlier version."""

    base: Version | None
    scans: Sequence[Scan]
    known: frozenset[str] = frozenset()

    @property
    def note(self) -> str:
        """Why the version is built."""
        lists = sorted({f"{scan.connection}/{scan.stream}" for scan in self.scans})
        return "rebuilt from the archive" if self.known else ", ".join(lists)


class _ScanFailed(Exception):
    """One scan cannot be loaded; never leaves this module."""

    def __init__(self, scan: Scan, reason: str) -> None:
        super().__init__(reason)
        self.scan = scan


def build(stores: BuildStores, on_note: OnNote = ignore_note) -> BuildResult:
    """Build and publish a version of every scan that waits for one; nothing new: return the base.

    A scan that is held is left out; so is one that fails, after which the build begins again.
    Raises LockHeld, BuildFailed and StorageFailed; the published version is then untouched.
    """
    with hold_lock(stores.metadata.locks, BUILD_LOCK, on_wait=on_note):
        versions.reconcile_versions(stores)
        base = stores.warehouse.published()
        loaded = versions.loaded_scans(stores.warehouse, base)
        with stores.metadata.transaction() as session:
            scans = buildable_scans(session, loaded)
        if base is not None and scans:
            versions.require_unchanged(stores.metadata, base)
        return _build_loadable(stores, _Plan(base, scans), on_note)


def rebuild(stores: BuildStores, on_note: OnNote = ignore_note) -> BuildResult:
    """Build and publish a version from the scan files alone, without a base and without requests.

    It holds the scans that the published version holds (or, where that cannot be read, the newest
    version that can). Raises BuildFailed where one of them cannot be loaded; nothing is published
    then. Scans that failed before are tried again. If no version can be read, every scan that
    waits for a build is loaded, as by `build`.
    """
    with hold_lock(stores.metadata.locks, BUILD_LOCK, on_wait=on_note):
        versions.reconcile_versions(stores)
        known = versions.scans_in_newest_readable(stores.warehouse)
        with stores.metadata.transaction() as session:
            chosen = known | _retry_failed(session)
            scans = _in_order(session, chosen) if known else buildable_scans(session, known)
        return _build_loadable(stores, _Plan(None, scans, known), on_note)


def _retry_failed(session: Session) -> frozenset[str]:
    """Let scans that failed wait for a build again: their file or our defect may be corrected."""
    failed = session.scalars(select(Scan.scan_id).where(Scan.status == ScanStatus.FAILED)).all()
    for scan_id in failed:
        set_status(session, scan_id, ScanStatus.SEALED)
    return frozenset(failed)


def _in_order(session: Session, scan_ids: frozenset[str]) -> list[Scan]:
    chosen = select(Scan).where(Scan.scan_id.in_(scan_ids))
    return list(session.scalars(chosen.order_by(Scan.started_at, Scan.scan_id)))


def _build_loadable(stores: BuildStores, plan: _Plan, on_note: OnNote) -> BuildResult:
    """Build; begin again without each scan that cannot be loaded."""
    failed: dict[str, str] = {}
    while plan.scans:
        try:
            return replace(_build_once(stores, plan, on_note), failed=failed)
        except _ScanFailed as error:
            scan_id = error.scan.scan_id
            if scan_id in plan.known:
                raise _cannot_rebuild(error) from error
            failed[scan_id] = str(error)
            with stores.metadata.transaction() as session:
                set_status(session, scan_id, ScanStatus.FAILED, str(error))
            plan = replace(plan, scans=[scan for scan in plan.scans if scan.scan_id != scan_id])
    return BuildResult(plan.base, is_new=False, failed=failed)


def _build_once(stores: BuildStores, plan: _Plan, on_note: OnNote) -> BuildResult:
    number = versions.start_version(stores, plan.base, plan.note)
    version = None
    try:
        version, results = _make(stores, plan, number, on_note)
    finally:
        if version is None:
            versions.discard_version(stores, number)
    if version is not None:
        versions.publish_version(stores, version)
    with stores.metadata.transaction() as session:
        for result in results:
            if result.held is not None:
                set_status(session, result.scan_id, ScanStatus.HELD, result.held)
    return BuildResult(version or plan.base, version is not None, results)


def _make(
    stores: BuildStores, plan: _Plan, number: int, on_note: OnNote
) -> tuple[Version | None, tuple[LoadResult, ...]]:
    """Make the file of a version; none where every scan is held."""
    making = stores.warehouse.begin(plan.base, number)
    try:
        catalog.create_tables(making.db)
        results = []
        for scan in plan.scans:
            on_note(f"Version {number}: loading {scan.connection}/{scan.stream} of {scan.day}.")
            results.append(_load(stores, making, scan, plan))
        is_new = any(result.held is None for result in results)
        return (_finish(stores, making) if is_new else None), tuple(results)
    except duckdb.Error as error:
        raise _not_built(number, error) from error
    finally:
        making.abort()  # does nothing to a finished file


def _load(stores: BuildStores, making: Build, scan: Scan, plan: _Plan) -> LoadResult:
    """Load one scan. Raises _ScanFailed, or StorageFailed for what is not the scan's fault."""
    stream = stores.settings.all_streams().get(scan.stream, Stream(scan.stream, ""))
    policy = LoadPolicy(
        contract=stream.contract,
        max_deleted_share=stream.max_deleted_share,
        allow_empty=stream.allow_empty,
        approved=scan.status == ScanStatus.APPROVED or scan.scan_id in plan.known,
    )
    try:
        sealed = stores.archive.open_sealed(scan)
        result = load_scan(making.db, sealed, policy)
        if result.held is None:
            catalog.add_scan(making.db, sealed, result.findings)
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # DuckDB wraps it while it works
            raise error.__cause__ from error
        if _storage_error(error):
            raise _not_built(making.number, error) from error
        # Whatever goes wrong with one scan must not hold back the others.
        raise _ScanFailed(scan, _reason(error)) from error
    return result


def _finish(stores: BuildStores, making: Build) -> Version:
    with stores.metadata.transaction() as session:
        live = catalog.live_rows(session)
    making.db.begin()  # one commit waits for the disk once
    catalog.write_state(making.db, live)
    making.db.commit()
    return making.commit(require_totals(control_totals(making.db)))


def _reason(error: Exception) -> str:
    if isinstance(error, PartnerSyncError):
        return str(error)
    return f"unexpected {type(error).__name__}: {printable(error)}"


def _storage_error(error: BaseException | None) -> BaseException | None:
    """Return what the disk or the memory limit refused; None where the scan is to blame."""
    found = None
    if isinstance(error, (ArchiveDamaged, ScanNotFound)):
        return None
    while error is not None:
        if isinstance(error, STORAGE_ERRORS):
            found = error
        error = error.__cause__ or error.__context__
    return found


def _not_built(number: int, error: Exception) -> BuildFailed | StorageFailed:
    seen = "Analysts still see the published version; the scans stay in the archive."
    if refused := _storage_error(error):
        return StorageFailed(
            f"Version {number} cannot be written: {printable(refused)}. {seen}",
            "Make room on the disk or raise memory_limit, then run `partner-sync versions build`.",
        )
    return BuildFailed(
        f"Version {number} cannot be built: {printable(error)}. {seen}",
        "Run `partner-sync verify`, then `partner-sync versions build`.",
    )


def _cannot_rebuild(error: _ScanFailed) -> BuildFailed:
    scan = error.scan
    return BuildFailed(
        f"Scan {scan.scan_id} of {scan.connection}/{scan.stream} ({scan.day}) cannot be loaded: "
        f"{error}. Nothing was rebuilt. Analysts still see the published version.",
        "Restore the scan file from a backup, then run `partner-sync versions rebuild`.",
    )
