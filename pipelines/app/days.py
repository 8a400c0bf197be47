"""What there is of each list on one UTC day: read now, or shown from the archive."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final

from pipelines.app.progress import OnProgress
from pipelines.app.results import ReadRequest, StreamResult
from pipelines.app.session import AppSession
from pipelines.app.sync import read_connection
from pipelines.archive.scan_file import SealedScan
from pipelines.core.clock import utc_now
from pipelines.core.errors import PartnerSyncError
from pipelines.metadata.scans import newest_sealed

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
    session: AppSession, day: date, request: ReadRequest, on_progress: OnProgress
) -> list[ListDay]:
    """Return what there is of each requested list that the connection has.

    Reads the service only if `day` is the current UTC day. Never raises an expected failure, so
    that other days of the same run go on.
    """
    name = request.connection
    try:
        if day == utc_now(session.clock).date():
            read = read_connection(session, request, on_progress)
            return [each for result in read for each in _read(result, day)]
        return [_archived(session, name, stream.name, day) for stream in request.lists(session)]
    except PartnerSyncError as error:
        note = f"{error} {error.remedy}".strip()
        return [ListDay(name, stream, day, None, note) for stream in request.streams]


def _read(result: StreamResult, day: date) -> Iterator[ListDay]:
    """Yield what was read under the day on which its scan began.

    That is yesterday where the run resumed an interrupted scan, or where midnight passed.
    """
    name, stream, note = result.connection, result.stream, f"{result.message} {result.remedy}"
    began = result.scan.header.day if result.scan else None
    if result.scan and began:
        yield ListDay(name, stream, began, result.scan, "service")
        note = (
            f"This run finished a scan that began on {began}, so it counts for that day. Launch "
            f"{day} again to read it."
        )
    if began != day:
        yield ListDay(name, stream, day, None, note.strip())


def _archived(session: AppSession, name: str, stream: str, day: date) -> ListDay:
    with session.metadata.transaction() as db:
        row = newest_sealed(db, name, stream, day=day)
    if row is None:
        return ListDay(name, stream, day, None, NO_SCAN)
    try:
        return ListDay(name, stream, day, session.archive.open_sealed(row), "archive")
    except PartnerSyncError as error:
        return ListDay(name, stream, day, None, f"{error} {error.remedy}".strip())
