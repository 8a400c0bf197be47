"""Reads one list of a run into a scan file: uses a new enough scan, resumes one, or starts one."""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pipelines.app.connect import Service
from pipelines.app.progress import Progress
from pipelines.app.results import Source, StreamResult, StreamState, Traffic
from pipelines.app.session import AppSession
from pipelines.archive.scan_file import OpenScan, ScanHeader, SealedScan
from pipelines.archive.store import scan_row
from pipelines.config.streams import Stream
from pipelines.core.clock import utc_now
from pipelines.core.completeness import ReadBudget
from pipelines.core.errors import ArchiveDamaged, ScanNotFound
from pipelines.extract.pages import ALGORITHM_VERSION
from pipelines.extract.scan import STOP, ReadOptions, read_scan
from pipelines.metadata import lists, scans
from pipelines.metadata.engine import new_id
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import Scan

RESUME_HOURS = 24  # a run without a schedule resumes an open scan that is not older
TOO_MANY_REQUESTS = 429


@dataclass(frozen=True)
class RunContext:
    """What the lists of one run share.

    A scan that began at or after `not_before` is used again. `has_waited`: another sync of the
    connection ended meanwhile. `traffic` gets the requests of lists that were not read to the end.
    """

    session: AppSession
    connection: str
    run_id: str
    not_before: datetime
    is_scheduled: bool
    progress: Progress
    has_waited: bool = False
    traffic: dict[str, Traffic] = field(default_factory=dict)

    @property
    def resume_since(self) -> datetime:
        """How old an open scan may be to be resumed."""
        return self.not_before - timedelta(hours=0 if self.is_scheduled else RESUME_HOURS)


async def read_list_of_run(run: RunContext, stream: Stream, service: Service) -> StreamResult:
    """Read one list completely, or as far as can be proven. Raises ServiceError, StorageFailed.

    A failed read leaves the scan open, so that a later run resumes it.
    """
    if (used := _new_enough_scan(run, stream)) is not None:
        return _result(run, used, Source.REUSED, Traffic())
    scan, source = _resumable_scan(run, stream), Source.RESUMED
    if scan is None:
        scan, source = _start_scan(run, stream, service), Source.READ
    before = _traffic(scan)
    try:
        sealed = await read_scan(service.client, scan, _options(run, stream), run.session.clock)
    except BaseException:
        with suppress(ArchiveDamaged):  # the failure that is under way says more
            run.traffic[stream.name] = _traffic(scan) - before
        raise
    finally:
        scan.close()
    with run.session.metadata.transaction() as db:
        scans.seal_scan(db, sealed.scan_id, sealed.completeness, sealed.sha256)
        memory = sealed.completeness.memory
        lists.remember(db, run.connection, stream.name, memory, sealed.scan_id)
    total = Traffic(sealed.completeness.requests, sealed.rate_limited)
    return _result(run, sealed, source, total - before)


def _traffic(scan: OpenScan) -> Traffic:
    statuses = [each.status for _, each in scan.exchanges() if each.purpose != STOP]
    return Traffic(len(statuses), statuses.count(TOO_MANY_REQUESTS))


def _options(run: RunContext, stream: Stream) -> ReadOptions:
    name = f"{run.connection}/{stream.name}"

    def advance(rows: int, requests: int, expected_rows: int | None) -> None:
        run.progress.advance(name, rows, requests, expected_rows)

    return ReadOptions(max_seconds=run.session.settings.sync_max_minutes * 60, on_progress=advance)


def _new_enough_scan(run: RunContext, stream: Stream) -> SealedScan | None:
    """Return a sealed scan of another run that began after this run was due or asked for."""
    with run.session.metadata.transaction() as db:
        row = scans.newest_sealed(db, run.connection, stream.name)
    if row is not None and row.started_at >= run.not_before:
        return run.session.archive.open_sealed(row)
    if row is not None and run.has_waited:
        run.progress.note(
            f"{stream.name}: the scan of {row.started_at:%H:%M:%S} UTC began before this sync was "
            "asked for, so the list is read again."
        )
    return None


def _resumable_scan(run: RunContext, stream: Stream) -> OpenScan | None:
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
        if scan.header.algorithm != ALGORITHM_VERSION:
            scan.close()
            _abandon(run, row, "Another version of partner-sync began the scan.")
            return None
        row.run_id = run.run_id
    began = f"{row.started_at:%Y-%m-%d %H:%M:%S} UTC"
    run.progress.note(f"{stream.name}: resuming the interrupted scan of {began}.")
    return scan


def _abandon(run: RunContext, row: Scan, reason: str) -> None:
    row.status, row.reason = ScanStatus.ABANDONED, reason
    run.progress.note(f"{row.stream}: {reason} The list is read again.")


def _start_scan(run: RunContext, stream: Stream, service: Service) -> OpenScan:
    started_at = utc_now(run.session.clock)
    with run.session.metadata.transaction() as db:
        header = ScanHeader(
            scan_id=new_id(started_at),
            run_id=run.run_id,
            connection=run.connection,
            stream=stream.name,
            path=stream.path,
            actor=service.actor,
            started_at=started_at,
            day=started_at.date(),
            configured_key=stream.key,
            memory=lists.memory_of(db, run.connection, stream.name),
            budget=ReadBudget(page_size=stream.limit),
            algorithm=ALGORITHM_VERSION,
        )
        db.add(scan_row(header))
    return run.session.archive.create(header)


def _result(run: RunContext, scan: SealedScan, source: Source, traffic: Traffic) -> StreamResult:
    proof = scan.completeness
    return StreamResult(
        connection=run.connection,
        stream=scan.header.stream,
        state=StreamState.COMPLETE if proof.complete else StreamState.PARTIAL,
        scan_id=scan.scan_id,
        rows=proof.rows,
        requests=traffic.requests,
        rate_limited=traffic.rate_limited,
        message=proof.sentence(scan.header.stream),
        source=source,
    )
