"""Reads one list of a run into a scan file: uses a new enough scan, resumes one, or starts one."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import uuid4

from pipelines.app.progress import Progress
from pipelines.app.results import StreamResult, StreamState
from pipelines.app.session import AppSession
from pipelines.archive.scan_file import OpenScan, ScanHeader, SealedScan
from pipelines.config.streams import Stream
from pipelines.core.clock import utc_now
from pipelines.core.completeness import ReadBudget
from pipelines.core.errors import ArchiveDamaged, ScanNotFound
from pipelines.extract.pages import ALGORITHM_VERSION
from pipelines.extract.scan import ReadOptions, read_scan
from pipelines.http.client import ServiceClient
from pipelines.metadata import lists, scans
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan

RESUME_HOURS = 24  # a run without a schedule resumes an open scan that is not older
TOO_MANY_REQUESTS = 429


@dataclass(frozen=True)
class RunContext:
    """What the lists of one run share. A scan that began at or after `not_before` is used again."""

    session: AppSession
    connection: str
    run_id: str
    actor: str
    not_before: datetime
    scheduled: bool
    progress: Progress

    @property
    def resume_since(self) -> datetime:
        """How old an open scan may be to be resumed."""
        return self.not_before - timedelta(hours=0 if self.scheduled else RESUME_HOURS)


async def read_list_of_run(run: RunContext, stream: Stream, client: ServiceClient) -> StreamResult:
    """Read one list completely, or as far as can be proven. Raises ServiceError, StorageFailed.

    A failed read leaves the scan open, so that a later run resumes it.
    """
    if (used := _new_enough_scan(run, stream)) is not None:
        return replace(_result(run, used), reused=True)
    scan = _resumable_scan(run, stream) or _start_scan(run, stream)
    if isinstance(scan, OpenScan):
        try:
            scan = await read_scan(client, scan, _options(run, stream), run.session.clock)
        finally:
            if isinstance(scan, OpenScan):
                scan.close()
    with run.session.metadata.transaction() as db:
        scans.seal_scan(db, scan)
        lists.remember(db, run.connection, stream.name, scan.completeness.memory, scan.scan_id)
    return _result(run, scan)


def _options(run: RunContext, stream: Stream) -> ReadOptions:
    name = f"{run.connection}/{stream.name}"

    def advance(rows: int, requests: int, expected_rows: int | None) -> None:
        run.progress.advance(name, rows, requests, expected_rows)

    return ReadOptions(max_seconds=run.session.settings.sync_max_minutes * 60, on_progress=advance)


def _new_enough_scan(run: RunContext, stream: Stream) -> SealedScan | None:
    """Return a sealed scan of another run that began after this run was due or asked for."""
    with run.session.metadata.transaction() as db:
        row = scans.newest_sealed(db, run.connection, stream.name, not_before=run.not_before)
    return None if row is None else run.session.archive.open(row)


def _resumable_scan(run: RunContext, stream: Stream) -> OpenScan | SealedScan | None:
    """Return the open scan to go on with; abandon every other one of the list."""
    with run.session.metadata.transaction() as db:
        row = scans.scan_to_resume(db, run.connection, stream.name, run.resume_since)
        if row is None:
            return None
        try:
            scan = run.session.archive.resume(row)
        except (ArchiveDamaged, ScanNotFound) as error:
            _abandon(run, row, str(error))
            return None
        if scan.header.algorithm != ALGORITHM_VERSION and isinstance(scan, OpenScan):
            scan.close()
            _abandon(run, row, "Another version of partner-sync began the scan.")
            return None
        row = scans.get_scan(db, row.scan_id)
        row.run_id = run.run_id
    run.progress.note(f"{stream.name}: resuming the scan of {row.started_at:%H:%M:%S} UTC.")
    return scan


def _abandon(run: RunContext, row: Scan, reason: str) -> None:
    row.status, row.reason = ScanStatus.ABANDONED, reason
    run.progress.note(f"{row.stream}: {reason} The list is read again.")


def _start_scan(run: RunContext, stream: Stream) -> OpenScan:
    started_at = utc_now(run.session.clock)
    with run.session.metadata.transaction() as db:
        header = ScanHeader(
            scan_id=str(uuid4()),
            run_id=run.run_id,
            connection=run.connection,
            stream=stream.name,
            path=stream.path,
            actor=run.actor,
            started_at=started_at,
            day=started_at.date(),
            configured_key=stream.key,
            memory=lists.memory_of(db, run.connection, stream.name),
            budget=ReadBudget(page_size=stream.limit),
            algorithm=ALGORITHM_VERSION,
        )
        scans.create_scan(db, header)
    return run.session.archive.create(header)


def _result(run: RunContext, scan: SealedScan) -> StreamResult:
    proof = scan.completeness
    refused = sum(exchange.status == TOO_MANY_REQUESTS for _, exchange in scan.exchanges())
    return StreamResult(
        connection=run.connection,
        stream=scan.header.stream,
        state=StreamState.COMPLETE if proof.complete else StreamState.PARTIAL,
        scan_id=scan.scan_id,
        rows=proof.rows,
        requests=proof.requests,
        rate_limited=refused,
        message=proof.sentence(scan.header.stream),
    )
