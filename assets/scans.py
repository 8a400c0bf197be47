"""Finds the scans of one connection on one day: today reads the service, the past is archived."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date

from pipelines.app.progress import Progress
from pipelines.app.results import StreamResult
from pipelines.app.session import AppSession
from pipelines.app.sync import ReadRequest, read_connection
from pipelines.archive.scan_file import SealedScan
from pipelines.core.clock import utc_now
from pipelines.core.errors import PartnerSyncError
from pipelines.metadata.scans import get_scan, newest_sealed


@dataclass(frozen=True)
class DayScan:
    """The sealed scan of one list on one day. `source` is `service` or `archive`."""

    connection: str
    stream: str
    day: date
    scan: SealedScan
    source: str


@dataclass(frozen=True)
class NoScan:
    """A list without a scan on a day, and why."""

    connection: str
    stream: str
    day: date
    reason: str


Outcome = DayScan | NoScan


def scans_of_day(
    session: AppSession, day: date, request: ReadRequest, progress: Progress
) -> list[Outcome]:
    """Return one outcome per requested list that the connection has.

    Reads the service only if `day` is the current UTC day. Never raises an expected failure, so
    that other days of the same run go on.
    """
    wanted = request.streams or ()
    try:
        connection = session.settings.connection(request.connection)
        known = [stream.name for stream in session.settings.streams_of(connection)]
        streams = tuple(name for name in known if name in wanted)
        if not streams:
            reason = f"The connection has no such stream. It has: {', '.join(known) or 'none'}."
            return [NoScan(request.connection, name, day, reason) for name in wanted]
        if day != utc_now(session.clock).date():
            return [_archived_scan(session, request.connection, name, day) for name in streams]
        result = read_connection(session, replace(request, streams=streams), progress)
        return [found for each in result.streams for found in _scan_read(session, each, day)]
    except PartnerSyncError as error:
        return [NoScan(request.connection, name, day, _words(error)) for name in wanted]


def _scan_read(session: AppSession, result: StreamResult, day: date) -> Iterator[Outcome]:
    """Yield the scan that was read, under the day on which it began.

    That is yesterday where the run resumed an interrupted scan, or where midnight passed.
    """
    connection, stream = result.connection, result.stream
    if result.scan_id is None:
        yield NoScan(connection, stream, day, f"{result.message} {result.remedy}".strip())
        return
    with session.metadata.transaction() as db:
        scan = session.archive.open_sealed(get_scan(db, result.scan_id))
    began = scan.header.day
    yield DayScan(connection, stream, began, scan, "service")
    if began != day:
        reason = f"This run finished a scan that began on {began}, so it counts for that day."
        yield NoScan(connection, stream, day, f"{reason} Launch {day} again to read it.")


def _archived_scan(session: AppSession, connection: str, stream: str, day: date) -> Outcome:
    """Return the newest sealed scan of a day; the service cannot be asked about the past."""
    try:
        with session.metadata.transaction() as db:
            row = newest_sealed(db, connection, stream, day=day)
            if row is not None:
                return DayScan(connection, stream, day, session.archive.open_sealed(row), "archive")
    except PartnerSyncError as error:
        return NoScan(connection, stream, day, _words(error))
    reason = "The archive has no scan of this day, and the service cannot be asked about the past."
    return NoScan(connection, stream, day, reason)


def _words(error: PartnerSyncError) -> str:
    return f"{error} {error.remedy}".strip()
