"""Here: what there is of lists on a day: today from the service, a past day from the archive.

Dagster's partitions are connections and days. Not here: the reading itself (nightly, read).
"""

from collections.abc import Collection, Iterator
from datetime import date

from pipelines.app.nightly import read
from pipelines.app.results import OnProgress, ReadRequest, StreamResult
from pipelines.app.session import AppSession
from pipelines.core.errors import PartnerSyncError
from pipelines.metadata import scans

NO_SCAN = "The archive has no scan of this day, and the service cannot be asked about the past."


def lists_of_day(
    session: AppSession, day: date, requests: Collection[ReadRequest], on_progress: OnProgress
) -> list[StreamResult]:
    """Return what there is of each requested list that its connection has.

    Reads the service only if `day` is the current UTC day. Never raises an expected failure, so
    that other days of the same run go on.
    """
    known = list[ReadRequest]()
    results = list[StreamResult]()
    for request in requests:
        try:
            request.lists(session)
        except PartnerSyncError as error:
            results += _none_read(request, error)
        else:
            known.append(request)
    if day != session.clock.utc_now().date():
        for request in known:
            results += _archived(session, request, day)
        return results
    streams, _early = read(session, known, on_progress, publish_early=True)
    return results + streams


def _none_read(request: ReadRequest, error: PartnerSyncError) -> Iterator[StreamResult]:
    for stream in request.streams:
        yield StreamResult(request.connection, stream, message=str(error), remedy=error.remedy)


def _archived(session: AppSession, request: ReadRequest, day: date) -> Iterator[StreamResult]:
    """Yield the newest scan of a day of each requested list."""
    for stream in request.lists(session):
        result = StreamResult(
            request.connection, stream.name, source="archive", message=NO_SCAN, remedy=""
        )
        with session.metadata.transaction() as db:
            row = scans.newest_sealed(db, request.connection, stream.name, day=day)
        try:
            result.scan = session.archive.open_sealed(row) if row else None
        except PartnerSyncError as error:
            result.message = str(error)
            result.remedy = error.remedy
            result.may_pass = error.may_pass
        yield result
