"""What there is of each list on one UTC day: read now, or shown from the archive."""

from datetime import date
from typing import Final

from pipelines.app.results import OnProgress, ReadRequest, StreamResult
from pipelines.app.session import AppSession
from pipelines.app.sync import read_connection
from pipelines.core.clock import utc_now
from pipelines.core.errors import PartnerSyncError
from pipelines.metadata.scans import newest_sealed

NO_SCAN: Final = (
    "The archive has no scan of this day, and the service cannot be asked about the past."
)


def lists_of_day(
    session: AppSession, day: date, request: ReadRequest, on_progress: OnProgress
) -> list[StreamResult]:
    """Return what there is of each requested list that the connection has.

    Reads the service only if `day` is the current UTC day. Never raises an expected failure, so
    that other days of the same run go on.
    """
    name = request.connection
    try:
        if day == utc_now(session.clock).date():
            return read_connection(session, request, on_progress)
        return [_archived(session, name, stream.name, day) for stream in request.lists(session)]
    except PartnerSyncError as error:
        return [
            StreamResult(name, stream, message=str(error), remedy=error.remedy)
            for stream in request.streams
        ]


def why_missing(result: StreamResult, day: date) -> str:
    """Return why a list has no scan of a day; empty if it has one.

    A scan counts for the day on which it began. That is yesterday where the run resumed an
    interrupted scan, or where midnight passed.
    """
    if result.scan is None:
        return f"{result.message} {result.remedy}".strip()
    began = result.scan.header.day
    if began == day:
        return ""
    return (
        f"This run finished a scan that began on {began}, so it counts for that day. Launch "
        f"{day} again to read it."
    )


def _archived(session: AppSession, name: str, stream: str, day: date) -> StreamResult:
    result = StreamResult(name, stream, source="archive", message=NO_SCAN, remedy="")
    with session.metadata.transaction() as db:
        row = newest_sealed(db, name, stream, day=day)
    try:
        result.scan = session.archive.open_sealed(row) if row else None
    except PartnerSyncError as error:
        result.message, result.remedy = str(error), error.remedy
    return result
