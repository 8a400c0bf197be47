"""Reads the lists of one connection, as one run; a failed list does not stop the others."""

import asyncio
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from pipelines.app.connect import Service, open_service
from pipelines.app.progress import Progress
from pipelines.app.read_list import RunContext, read_list_of_run
from pipelines.app.results import RunResult, StreamResult, StreamState, Traffic
from pipelines.app.session import AppSession
from pipelines.config.connections import Connection
from pipelines.config.streams import Stream
from pipelines.core.clock import utc_now
from pipelines.core.errors import ConfigurationError, LockHeld, PartnerSyncError
from pipelines.core.text import printable
from pipelines.metadata import runs
from pipelines.metadata.engine import new_id
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.runs import Outcome


@dataclass(frozen=True)
class ReadRequest:
    """Which lists of one connection to read, and what asked for it.

    `streams` None means all that the connection has. A scan that began at or after the scheduled
    tick, else after the request, is used instead of read again.
    """

    connection: str
    streams: tuple[str, ...] | None = None
    trigger: str = "command"
    scheduled_at: datetime | None = None


INTERRUPTED = PartnerSyncError(
    "Interrupted before its end. Analysts still see the published version.",
    "Run `partner-sync sync` within 24 hours to resume it.",
)


@dataclass(frozen=True)
class _Run:
    """One run: its context, and the results so far by stream."""

    context: RunContext
    connection: Connection
    streams: list[Stream]
    results: dict[str, StreamResult] = field(default_factory=dict)

    def all_results(self) -> tuple[StreamResult, ...]:
        """Return a result for each stream; one without a result was interrupted."""
        return tuple(
            self.results.get(stream.name)
            or self.unread(stream.name, StreamState.INTERRUPTED, INTERRUPTED)
            for stream in self.streams
        )

    def unread(self, stream: str, state: StreamState, error: PartnerSyncError) -> StreamResult:
        """Return the result of a list that was not read to its end."""
        clean = self.context.session.redactor.clean
        traffic = self.context.traffic.get(stream, Traffic())
        return StreamResult(
            connection=self.connection.name,
            stream=stream,
            state=state,
            scan_id=None,
            rows=None,
            requests=traffic.requests,
            rate_limited=traffic.rate_limited,
            message=clean(str(error)),
            remedy=clean(error.remedy),
            error_code=error.exit_code,
        )


def read_connection(session: AppSession, request: ReadRequest, progress: Progress) -> RunResult:
    """Read lists of one connection into scan files, resuming scans that were interrupted.

    Whatever fails for one list is in its StreamResult, also a lock that stays held. Raises
    ConfigurationError and StorageFailed. KeyboardInterrupt, too, after it was recorded.
    """
    connection = session.settings.connection(request.connection)
    streams = select_streams(session, connection, request.streams)
    requested_at = utc_now(session.clock)

    context = RunContext(
        session=session,
        connection=connection.name,
        run_id=new_id(requested_at),
        not_before=request.scheduled_at or requested_at,
        is_scheduled=request.scheduled_at is not None,
        progress=progress,
    )
    run = _Run(context, connection, streams)
    try:
        lock = f"sync.{connection.name}"
        with hold_lock(session.home.locks, lock, on_wait=progress.note) as has_waited:
            run = replace(run, context=replace(context, has_waited=has_waited))
            with _recorded(run, request):
                asyncio.run(_read_lists(run))
    except LockHeld as error:
        _fail_all(run, error)
    return RunResult(run.context.run_id, connection.name, run.all_results())


def select_streams(
    session: AppSession, connection: Connection, names: tuple[str, ...] | None
) -> list[Stream]:
    """Return the streams of a connection that were asked for. Raises ConfigurationError."""
    known = session.settings.streams_of(connection)
    possible = ", ".join(stream.name for stream in known) or "none"
    unknown = sorted(set(names or ()) - {stream.name for stream in known})
    if unknown:
        raise ConfigurationError(
            f"Connection `{connection.name}` has no stream `{', '.join(unknown)}`. "
            f"Possible streams: {possible}."
        )
    if not known:
        raise ConfigurationError(
            f"Connection `{connection.name}` has no stream on the {connection.surface} surface.",
            'Add [streams.NAME] with path = "/v2/..." and surface to settings.toml.',
        )
    return [stream for stream in known if names is None or stream.name in names]


@contextmanager
def _recorded(run: _Run, request: ReadRequest) -> Iterator[None]:
    """Write the run's row before the block and its outcome afterwards, however the block ends."""
    session, run_id = run.context.session, run.context.run_id
    with session.metadata.transaction() as db:
        now = utc_now(session.clock)
        runs.close_dead_runs(db, now)
        start = runs.RunStart(
            run_id, request.connection, request.trigger, now, request.scheduled_at
        )
        runs.start_run(db, start)
    try:
        yield
    finally:
        results = run.all_results()
        unread = [f"{each.stream}: {each.message}" for each in results if each.scan_id is None]
        end = runs.RunEnd(
            ended_at=utc_now(session.clock),
            outcome=_worst({each.state for each in results}),
            message=" ".join(unread) or None,
            requests=sum(each.requests for each in results),
            rate_limited=sum(each.rate_limited for each in results),
        )
        with session.metadata.transaction() as db:
            runs.end_run(db, run_id, end)


def _worst(states: set[StreamState]) -> Outcome:
    order = (StreamState.INTERRUPTED, StreamState.FAILED, StreamState.PARTIAL)
    worst = next((state for state in order if state in states), StreamState.COMPLETE)
    return Outcome(str(worst))


async def _read_lists(run: _Run) -> None:
    try:
        async with (
            open_service(run.context.session, run.connection) as service,
            asyncio.TaskGroup() as group,
        ):
            for stream in run.streams:
                group.create_task(_read_list(run, stream, service))
    except PartnerSyncError as error:  # of the whole connection: credentials, identity
        _fail_all(run, error)


def _fail_all(run: _Run, error: PartnerSyncError) -> None:
    """Give every list that has no result yet the failure of the connection."""
    for stream in run.streams:
        failed = run.unread(stream.name, StreamState.FAILED, error)
        run.results.setdefault(stream.name, failed)


async def _read_list(run: _Run, stream: Stream, service: Service) -> None:
    """Read one list and keep its result; no failure of one list reaches the others."""
    try:
        result = await read_list_of_run(run.context, stream, service)
    except PartnerSyncError as error:
        result = run.unread(stream.name, StreamState.FAILED, error)
    except Exception as error:  # noqa: BLE001 - a defect in one list must not stop the others
        result = run.unread(stream.name, StreamState.FAILED, _defect(error))
    run.results[stream.name] = result


def _defect(error: Exception) -> PartnerSyncError:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
    return PartnerSyncError(
        f"Unexpected {type(error).__name__} at {place}: {printable(error)}. The list was not read "
        "to its end. Analysts still see the published version.",
        "This is a defect of partner-sync. Report it with this message.",
    )
