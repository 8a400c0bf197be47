"""What there is of each list on one UTC day: read now, or shown from the archive."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from pipelines.app.progress import Progress
from pipelines.app.results import ReadRequest, StreamResult
from pipelines.app.session import AppSession
from pipelines.app.sync import read_connection
from pipelines.archive.scan_file import SealedScan
from pipelines.core.clock import utc_now
from pipelines.core.errors import ConfigurationError, PartnerSyncError, ScanNotFound
from pipelines.metadata.scans import get_scan, newest_sealed

NO_SCAN: Final = (
    "The archive has no scan of this day, and the service cannot be asked about the past."
)


@dataclass(frozen=True)
class ListDay:
    """One list on one day. `note` says where its scan is from, or why there is none."""

    connection: str
    stream: str
    day: date
    scan: SealedScan | None
    note: str


def lists_of_day(
    session: AppSession, day: date, request: ReadRequest, progress: Progress
) -> list[ListDay]:
    """Return what there is of each requested list that the connection has.

    Reads the service only if `day` is the current UTC day. Never raises an expected failure, so
    that other days of the same run go on.
    """
    name, streams = request.connection, request.streams or ()
    results: dict[str, StreamResult] = {}
    try:
        known = [each.name for each in session.lists([name])[name]]
        wanted = tuple(stream for stream in known if stream in streams)
        if not wanted:
            has = ", ".join(known) or "none"
            raise ConfigurationError(f"The connection has no such stream. It has: {has}.")
        if day == utc_now(session.clock).date():
            read = read_connection(session, replace(request, streams=wanted), progress)
            results = {each.stream: each for each in read.streams}
    except PartnerSyncError as error:
        return [_missing(name, stream, day, error) for stream in streams]
    of_lists = (_list_day(session, name, each, day, results.get(each)) for each in wanted)
    return [each for of_list in of_lists for each in of_list]


def _list_day(
    session: AppSession, name: str, stream: str, day: date, result: StreamResult | None
) -> Iterator[ListDay]:
    """Yield the scan that was read (`result` None: that is archived) under the day it began.

    That is yesterday where the run resumed an interrupted scan, or where midnight passed.
    """
    scan_id = result and result.scan_id
    if result and not scan_id:
        yield _missing(name, stream, day, PartnerSyncError(result.message, result.remedy))
        return
    try:
        with session.metadata.transaction() as db:
            archived = newest_sealed(db, name, stream, day=day)
            row = get_scan(db, scan_id) if scan_id else archived
        if row is None:
            raise ScanNotFound(NO_SCAN)
        scan = session.archive.open_sealed(row)
        yield ListDay(name, stream, row.day, scan, "service" if result else "archive")
        if row.day != day:
            raise ScanNotFound(
                f"This run finished a scan that began on {row.day}, so it counts for that day.",
                f"Launch {day} again to read it.",
            )
    except PartnerSyncError as error:
        yield _missing(name, stream, day, error)


def _missing(name: str, stream: str, day: date, error: PartnerSyncError) -> ListDay:
    return ListDay(name, stream, day, None, f"{error} {error.remedy}".strip())
