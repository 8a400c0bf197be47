"""Tries connections before a sync, and says how many requests and seconds the sync takes."""

import math

from pipelines.app.connect import account_of, limiter_actor, open_service
from pipelines.app.description import read_description, sized
from pipelines.app.session import AppSession
from pipelines.app.skipped import Found, note_permissions
from pipelines.archive.envelope import ParsedPage
from pipelines.checks.skipped import READ_AGAIN
from pipelines.config.connections import Connection, skip_streams
from pipelines.config.settings import Stream
from pipelines.core import loop
from pipelines.core.errors import NotPermitted, PartnerSyncError
from pipelines.http.retry import UNCHANGED
from pipelines.metadata.scans import newest_sealed
from pipelines.metadata.tables import RateLimitActor, Scan
from pipelines.warehouse.duckdb_file import Row

DOCUMENTED_LIMIT = 5  # requests per second of an authenticated actor ("Rate limits")
CREDENTIALS = "credentials"
HINT = (
    "The length of a list without a finished scan is not known. `partner-sync plan --ask` requests "
    "one page of it; `partner-sync sync` reads it."
)


async def _first_pages(
    session: AppSession, connection: Connection, streams: list[Stream]
) -> dict[str, Found]:
    """Request one page of each list; a failure of the whole connection is under `credentials`."""
    found: dict[str, Found] = {}
    try:
        async with open_service(session, connection) as client:
            document = await read_description(session, client)
            for stream in streams:
                limit = sized(document, stream).limit
                try:
                    answer = await client.page(stream.path, 0, limit, lambda _attempt: None)
                    found[stream.name] = answer.content
                except PartnerSyncError as error:
                    found[stream.name] = error
    except PartnerSyncError as error:
        found = {CREDENTIALS: error}
    return found


def check_connections(
    session: AppSession, connections: list[str] | None, *, skip_refused: bool = False
) -> list[Row]:
    """Try connections (None: all): credentials, account, one page of each list.

    That includes skipped lists, so that it is seen when the account may read them. `skip_refused`
    lets a connection skip the lists that its account may not read, unless it may read none.
    """
    rows = []
    for name, streams in session.lists(connections).items():
        connection = session.settings.connection(name)
        lists = streams + session.settings.skipped_by(connection)
        pages = loop.run(_first_pages(session, connection, lists))
        refused = [each.name for each in streams if isinstance(pages.get(each.name), NotPermitted)]
        if skip_refused and refused and len(refused) < len(streams):
            skip_streams(session.home.connections_file, name, refused)
        skipped = session.settings.connection(name).skip
        if CREDENTIALS not in pages:
            noted = {stream: page for stream, page in pages.items() if stream in skipped}
            note_permissions(session, name, noted)
        found: dict[str, Found | str] = {CREDENTIALS: f"accepted: {account_of(session, name)}"}
        # The merchant surface has no whoami: only a list that was read proves its key.
        if connection.surface == "merchant" and not any(
            isinstance(page, ParsedPage) for page in pages.values()
        ):
            found = {}
        found |= pages
        rows += [
            {"connection": name, "checked": checked}
            | (_skipped(name, checked, each) if checked in skipped else _checked(each))
            for checked, each in found.items()
        ]
    clean = session.redactor.clean
    return [row | {field: clean(row[field]) for field in ("message", "remedy")} for row in rows]


def _checked(found: Found | str) -> Row:
    if isinstance(found, PartnerSyncError):
        return {"passed": False, "message": str(found), "remedy": found.remedy}
    if isinstance(found, ParsedPage):
        found = f"can be read and {'has rows' if found.data else 'is empty'}"
    return {"passed": True, "message": found, "remedy": ""}


def _skipped(name: str, stream: str, found: Found | str) -> Row:
    """Return the result of the check of a skipped list, which always passes."""
    if isinstance(found, ParsedPage):
        remedy = READ_AGAIN.format(connection=name, stream=stream)
        return {"passed": True, "message": "is skipped, but can be read", "remedy": remedy}
    said = str(found).removesuffix(UNCHANGED).strip()
    message = f"is skipped. Whether the account may read it is not known. {said}"
    if isinstance(found, NotPermitted):
        message = (
            f"this account may not read it (403). It is skipped; `partner-sync check` and each "
            f"sync look again. {said}"
        )
    return {"passed": True, "message": message, "remedy": ""}


def plan_sync(
    session: AppSession, connections: list[str] | None, *, ask: bool = False
) -> list[Row]:
    """Return one row for each list that a sync of these connections (None: all) reads.

    `ask` requests one page of each list without a finished scan. Raises ServiceError then where a
    connection cannot be used. Numbers that are None are not known; `at_least`: they may be more;
    `basis` says what they rest on, or why a page could not be read.
    """
    rows = []
    for name, streams in session.lists(connections).items():
        connection = session.settings.connection(name)
        actor = limiter_actor(session, connection)
        with session.metadata.transaction() as db:
            scans = {stream.name: newest_sealed(db, name, stream.name) for stream in streams}
            stated = db.get(RateLimitActor, actor)
        limit = (stated and stated.limit) or DOCUMENTED_LIMIT
        speed = min(limit, connection.max_requests_per_window or limit)
        unread = [stream for stream in streams if ask and not scans[stream.name]]
        pages = loop.run(_first_pages(session, connection, unread)) if unread else {}
        if isinstance(failure := pages.get(CREDENTIALS), PartnerSyncError):
            raise failure
        rows += [
            {"connection": name, "stream": stream.name}
            | _planned(stream, scans[stream.name], pages.get(stream.name), speed)
            for stream in streams
        ]
    return rows


def _planned(
    stream: Stream, scan: Scan | None, page: Found | None, requests_per_second: int
) -> Row:
    rows = requests = None
    at_least, basis = False, "not known"
    if scan is not None:
        rows, at_least = scan.rows, not scan.complete
        requests, passes = _requests(stream, scan)
        basis = f"scan of {scan.started_at:%Y-%m-%d %H:%M} UTC{passes}"
    elif isinstance(page, ParsedPage):  # it proves a length, or that there is more
        more = bool(page.pagination.has_more)
        at_least = more or len(page.data) >= (page.pagination.limit or 1)
        rows, requests, basis = len(page.data) + more, 1 + at_least * stream.passes, "one page"
    elif page:
        basis = f"not known. {page} {page.remedy}".strip()
    seconds = None if requests is None else math.ceil(requests / requests_per_second)
    numbers = {"rows": rows, "requests": requests, "seconds": seconds}
    return {**numbers, "at_least": at_least, "basis": basis}


def _requests(stream: Stream, scan: Scan) -> tuple[int, str]:
    """Return how many requests a list takes that took so many, and what changed since, in words."""
    before = (scan.traits or {}).get("passes", 1)
    if before == stream.passes or scan.requests <= 1:
        return scan.requests, ""
    changed = f", with passes = {stream.passes} in place of {before}"
    return math.ceil(scan.requests * stream.passes / before), changed


def total(rows: list[Row]) -> str:
    """Return what all lists of a plan take together, in words."""
    known = [row for row in rows if row["requests"] is not None]
    if not known:
        return f"How long the next sync takes is not known. {HINT}"
    bound = "at least " if any(row["at_least"] for row in rows) or len(known) < len(rows) else ""
    requests, seconds = (sum(row[name] for row in known) for name in ("requests", "seconds"))
    text = f"The next sync takes {bound}{requests:,} requests, {bound}{seconds:,} seconds."
    return text if len(known) == len(rows) else f"{text} {HINT}"
