"""Here: runs, each of which reads the lists of one connection into scan files.

All runs of a process are in one event loop. A list or connection that fails stops no other. Not
here: what happens with the scans afterwards (nightly), what there was on a day (days), the pages of
one list (extract).
"""

import asyncio
import logging
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy.orm import Session

from pipelines.app.connect import limiter_actor, open_service
from pipelines.app.description import read_description, sized
from pipelines.app.results import OnProgress, ReadRequest, StreamResult
from pipelines.app.resume import resume_scan
from pipelines.app.session import AppSession
from pipelines.app.skipped import look_again
from pipelines.archive.archive import scan_row
from pipelines.archive.lines import ScanHeader
from pipelines.archive.scan_file import SealedScan
from pipelines.config.settings import Stream
from pipelines.core.errors import DEFECT, PartnerSyncError
from pipelines.core.loop import in_thread
from pipelines.core.text import printable
from pipelines.extract.pages import ALGORITHM_VERSION
from pipelines.extract.scan import read_scan
from pipelines.http.client import ServiceClient
from pipelines.metadata import scans
from pipelines.metadata.engine import new_id
from pipelines.metadata.locks import hold_lock_beside_others
from pipelines.metadata.runs import Outcome, end_killed_runs, redate_runs, unread
from pipelines.metadata.tables import Run

# A run without a schedule resumes an open scan that is not older; a scheduled one, none of before
# its tick.
RESUME_HOURS = 24
logger = logging.getLogger(__name__)


async def read_all(
    session: AppSession, requests: Collection[ReadRequest], on_progress: OnProgress
) -> list[StreamResult]:
    """Read lists of connections into scan files; what fails for one is in its StreamResult.

    At most `connections_at_once` are read at the same time. Raises ConfigurationError for a list
    that no connection has.
    """
    room = asyncio.Semaphore(session.settings.connections_at_once)
    reads = [_read_connection(session, request, on_progress, room) for request in requests]
    # Not a TaskGroup: it would cancel the other runs when one fails.
    ended = await asyncio.gather(*reads, return_exceptions=True)
    results = list[StreamResult]()
    for results_or_error in ended:
        if isinstance(results_or_error, BaseException):
            raise results_or_error
        results += results_or_error
    return results


async def _read_connection(
    session: AppSession,
    request: ReadRequest,
    on_progress: OnProgress,
    room: asyncio.Semaphore,
) -> list[StreamResult]:
    name = request.connection
    now = session.clock.utc_now()
    streams = request.lists(session)
    row = Run(
        run_id=new_id(now),
        connection=name,
        trigger=request.trigger,
        scheduled_at=request.scheduled_at,
        started_at=now,
        owner=session.metadata.this_process(),
    )
    results = {stream.name: StreamResult(name, stream.name) for stream in streams}
    run = _Run(session, row, results, request.scheduled_at or now, on_progress)
    try:
        # The lock first: while another process has it, the place is free for others.
        lock = hold_lock_beside_others(session.metadata.locks, f"sync.{name}")
        async with lock as has_waited, room:
            with run.recorded():
                if has_waited:
                    since = f"{run.not_before:%Y-%m-%d %H:%M:%S} UTC"
                    logger.info("Lists whose last scan began before %s are read again.", since)
                await run.read_lists(streams)
    except PartnerSyncError as error:  # of the lock, or of the row of the run
        run.fail_all(error)
    return list(results.values())


@dataclass
class _Run:
    """One run: its row, and a result for each list.

    A sealed scan that began at `not_before` or later is used again.
    """

    session: AppSession
    row: Run
    results: dict[str, StreamResult]
    not_before: datetime
    on_progress: OnProgress

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Write the run's row before the block and its outcome afterwards, however it ends."""
        row = self.row
        results = self.results.values()
        with self.session.metadata.transaction() as db:
            row.started_at = self.session.clock.utc_now()
            row.lists = self._lists()
            end_killed_runs(db, row.started_at, row.connection)
            self._redate(db, row.started_at)
            db.add(row)
        try:
            yield
        except PartnerSyncError as error:  # of the whole connection: credentials, identity
            self.fail(error)
        except Exception as error:  # noqa: BLE001 - a defect in one must not stop the others
            self.fail(_defect(error))
        finally:
            with self.session.metadata.transaction() as db:
                db.add(row)
                row.ended_at = self.session.clock.utc_now()
                row.lists = self._lists()
                # The outcome of a run is the worst of its lists.
                outcomes = [result.state for result in results]
                row.outcome = max(outcomes, key=list(Outcome).index)
                reasons, remedies = unread(row.lists)
                row.message = f"{reasons} {remedies}".strip() or None
                row.requests = sum(result.requests for result in results)
                row.rate_limited = sum(result.rate_limited for result in results)

    def _redate(self, db: Session, now: datetime) -> None:
        """Move what a clock that was ahead dated after this run before it."""
        latest = redate_runs(db, now, self.row.connection)
        scans.redate_scans(db, now, self.row.connection)
        if latest:
            logger.warning(
                "The clock of this machine says %s UTC, but the last sync of `%s` began at %s UTC. "
                "The clock was ahead then, or was set back. The lists are read again.",
                *(f"{now:%Y-%m-%d %H:%M:%S}", self.row.connection, f"{latest:%Y-%m-%d %H:%M:%S}"),
            )

    def _lists(self) -> dict[str, dict[str, str]]:
        """Return how each list ended so far, as its run keeps it."""
        lists = dict[str, dict[str, str]]()
        for stream, result in self.results.items():
            lists[stream] = {
                "state": result.state,
                "message": result.message,
                "remedy": result.remedy,
            }
        return lists

    async def read_lists(self, streams: list[Stream]) -> None:
        """Read all lists at once."""
        connection = self.session.settings.connection(self.row.connection)
        async with open_service(self.session, connection) as client:
            document = await read_description(self.session, client)
            async with asyncio.TaskGroup() as group:
                for stream in streams:
                    group.create_task(self._read_list(sized(document, stream), client))
            await look_again(self.session, client, document)

    def fail_all(self, error: PartnerSyncError) -> None:
        """Note the failure of the whole run: no build takes its scans before the next run."""
        for result in self.results.values():
            result.state = Outcome.INTERRUPTED
            result.scan = None
        self.fail(error)

    def fail(self, error: PartnerSyncError, stream: str | None = None) -> None:
        """Note the failure of a list; without `stream`, of every list that has no result yet."""
        clean = self.session.redactor.clean
        for result in self.results.values():
            if stream in {None, result.stream} and result.state is Outcome.INTERRUPTED:
                result.state = Outcome.FAILED
                result.exit_code = error.exit_code
                result.may_pass = error.may_pass
                result.message = clean(str(error))
                result.remedy = clean(error.remedy)

    async def _read_list(self, stream: Stream, client: ServiceClient) -> None:
        """Read one list and keep its result; no failure of one list reaches the others."""
        result = self.results[stream.name]
        try:
            scan = await in_thread(self._new_enough_scan, result)
            if scan is None:
                scan = await self._read_scan(stream, client)
        except PartnerSyncError as error:
            self.fail(error, stream.name)
        except Exception as error:  # noqa: BLE001 - a defect in one list must not stop the others
            self.fail(_defect(error), stream.name)
        else:
            proof = scan.completeness
            result.scan = scan
            result.state = Outcome.COMPLETE if proof.complete else Outcome.PARTIAL
            result.message = proof.sentence(stream.name)
            result.remedy = ""

    def _new_enough_scan(self, result: StreamResult) -> SealedScan | None:
        """Return a sealed scan of another run that began after this run was due or asked for."""
        # A scan that began later than now shows that the clock was set back.
        now = self.session.clock.utc_now()
        with self.session.metadata.transaction() as db:
            row = scans.newest_sealed(db, result.connection, result.stream)
        if row is None or not self.not_before <= row.started_at <= (row.ended_at or now) <= now:
            return None
        result.source = "reused"
        return self.session.archive.open_sealed(row)

    async def _read_scan(self, stream: Stream, client: ServiceClient) -> SealedScan:
        """Read one list to its end; a failed read leaves the scan open, so that it is resumed."""
        session = self.session
        result = self.results[stream.name]
        advance = partial(self.on_progress, f"{result.connection}/{result.stream}")
        header = self._new_header(stream, client)
        hours = 0 if self.row.scheduled_at else RESUME_HOURS
        since = self.not_before - timedelta(hours=hours)
        scan = await in_thread(resume_scan, session, header, since)
        result.source = "resumed" if scan else "read"
        if scan is None:
            with session.metadata.transaction() as db:
                db.add(scan_row(header))
            scan = session.archive.create(header)
        try:
            sealed = await read_scan(client, scan, session.settings.sync_max_minutes * 60, advance)
        finally:
            result.requests = scan.requests
            result.rate_limited = scan.rate_limited
        with session.metadata.transaction() as db:
            scans.seal_scan(db, sealed.scan_id, sealed.completeness, sealed.sha256)
        return sealed

    def _new_header(self, stream: Stream, client: ServiceClient) -> ScanHeader:
        name = self.row.connection
        now = self.session.clock.utc_now()
        actor = limiter_actor(self.session, client.connection)
        with self.session.metadata.transaction() as db:
            last = scans.newest_sealed(db, name, stream.name)
            traits = scans.list_traits(db, name, stream.name)
        started_at = now
        # It is newer than the last one, also where the clock was set back.
        if last is not None:
            started_at = max(now, last.started_at + timedelta.resolution)
        return ScanHeader(
            scan_id=new_id(started_at),
            run_id=self.row.run_id,
            connection=name,
            stream=stream.name,
            path=stream.path,
            actor=actor,
            started_at=started_at,
            day=now.date(),
            configured_key=stream.key,
            traits=traits,
            page_size=stream.limit,
            algorithm=ALGORITHM_VERSION,
            base_url=client.connection.base_url,
            passes=stream.passes,
        )


def _defect(error: Exception) -> PartnerSyncError:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
    return PartnerSyncError(
        f"Unexpected {type(error).__name__} at {place}: {printable(error)}. The list was not read "
        "to its end. Analysts still see the published version.",
        DEFECT,
    )
