"""What the next sync will cost, from the last scan of each list or from one page of it."""

import asyncio
import math
from dataclasses import dataclass

from sqlalchemy import select

from pipelines.app.connect import limiter_actor, open_service
from pipelines.app.session import AppSession
from pipelines.archive.records import parse_page
from pipelines.config.connections import Connection
from pipelines.config.streams import Stream
from pipelines.http.client import Attempt
from pipelines.metadata.tables import RateLimitActor, Scan

DOCUMENTED_LIMIT = 5  # requests per second of an authenticated actor ("Rate limits")


@dataclass(frozen=True)
class PlannedList:
    """One list of the next sync. None means not known; `at_least`: it may be more.

    `basis` says what the numbers rest on.
    """

    connection: str
    stream: str
    rows: int | None
    requests: int | None
    seconds: int | None
    at_least: bool
    basis: str


def plan_sync(
    session: AppSession, connections: list[str] | None, *, ask: bool = False
) -> list[PlannedList]:
    """Return one entry for each list that a sync of these connections (None: all) reads.

    `ask` requests one page of each list without a finished scan. Raises ServiceError then.
    """
    planned: list[PlannedList] = []
    for name in connections or list(session.settings.connections()):
        connection = session.settings.connection(name)
        streams = session.settings.streams_of(connection)
        known = {stream.name: _from_last_scan(session, connection, stream) for stream in streams}
        unknown = [stream for stream in streams if known[stream.name].rows is None]
        if ask and unknown:
            known |= asyncio.run(_ask(session, connection, unknown))
        planned += known.values()
    return planned


def _from_last_scan(session: AppSession, connection: Connection, stream: Stream) -> PlannedList:
    of_list = select(Scan).where(Scan.connection == connection.name, Scan.stream == stream.name)
    sealed = of_list.where(Scan.sha256.is_not(None)).order_by(Scan.started_at.desc())
    with session.metadata.transaction() as db:
        last = db.scalars(sealed.limit(1)).first()
    if last is None:
        names = (connection.name, stream.name)
        return PlannedList(*names, None, None, None, at_least=False, basis="not known")
    return PlannedList(
        connection=connection.name,
        stream=stream.name,
        rows=last.rows,
        requests=last.requests,
        seconds=_seconds(session, connection, last.requests),
        at_least=not last.complete,
        basis=f"scan of {last.started_at:%Y-%m-%d %H:%M} UTC",
    )


async def _ask(
    session: AppSession, connection: Connection, streams: list[Stream]
) -> dict[str, PlannedList]:
    """Request the first page of lists. What it proves is a length, or that there is more."""
    found = {}
    async with open_service(session, connection) as service:
        for stream in streams:
            attempt = await service.client.page(stream.path, 0, stream.limit, _ignore)
            page = parse_page(attempt.body or b"", stream.limit)
            has_more = page.has_more or len(page.records) >= page.limit
            requests = 2 if has_more else 1
            found[stream.name] = PlannedList(
                connection=connection.name,
                stream=stream.name,
                rows=len(page.records) + page.has_more,
                requests=requests,
                seconds=_seconds(session, connection, requests),
                at_least=has_more,
                basis="one page",
            )
    return found


def _ignore(_attempt: Attempt) -> None:
    """Record nothing: a plan writes no scan file."""


def _seconds(session: AppSession, connection: Connection, requests: int) -> int:
    """Return how long requests take at the limit that the service last stated for the actor."""
    actor = limiter_actor(session, connection)
    with session.metadata.transaction() as db:
        known = db.get(RateLimitActor, actor)
    limit = (known and known.limit) or DOCUMENTED_LIMIT
    return math.ceil(requests / min(limit, connection.max_requests_per_window or limit))
