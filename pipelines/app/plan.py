"""What the next sync will cost, from the last scan of each list."""

from dataclasses import dataclass

from sqlalchemy import select

from pipelines.app.session import AppSession
from pipelines.metadata.tables import RateLimitActor, Scan

DOCUMENTED_LIMIT = 5  # requests per second of an authenticated actor ("Rate limits")


@dataclass(frozen=True)
class PlannedList:
    """One list of the next sync. None means not known: there is no finished scan yet."""

    connection: str
    stream: str
    rows: int | None
    requests: int | None
    seconds: int | None


def plan_sync(session: AppSession, connections: list[str] | None) -> list[PlannedList]:
    """Return one entry for each list that a sync of these connections (None: all) reads."""
    planned = []
    with session.metadata.transaction() as db:
        limits = [limit for limit in db.scalars(select(RateLimitActor.limit)) if limit]
        rate = min(limits, default=DOCUMENTED_LIMIT)
        for name, connection in session.settings.connections().items():
            if connections and name not in connections:
                continue
            for stream in session.settings.streams_of(connection):
                last = db.scalars(
                    select(Scan)
                    .where(Scan.connection == name, Scan.stream == stream.name)
                    .where(Scan.sha256.is_not(None))
                    .order_by(Scan.started_at.desc())
                    .limit(1)
                ).first()
                rows, requests = (last.rows, last.requests) if last else (None, None)
                seconds = None if requests is None else -(-requests // rate)
                planned.append(PlannedList(name, stream.name, rows, requests, seconds))
    return planned
