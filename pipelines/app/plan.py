"""Tries connections before a sync, and says how many requests and seconds the sync takes."""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pipelines.app.connect import account_of, limiter_actor, open_service
from pipelines.app.description import read_description, sized
from pipelines.app.session import AppSession
from pipelines.app.skipped import PageOrError, note_permissions
from pipelines.archive.envelope import ParsedPage
from pipelines.checks.connections import READ_AGAIN
from pipelines.config.connections import Connection, skip_streams
from pipelines.config.settings import Stream
from pipelines.core import loop
from pipelines.core.errors import NotPermitted, PartnerSyncError
from pipelines.http.retry import UNCHANGED
from pipelines.metadata.scans import newest_sealed
from pipelines.metadata.tables import RateLimitActor, Scan
from pipelines.warehouse.duckdb_file import Row

# Requests per second of an authenticated actor, by "Rate limits" of the interface document.
DOCUMENTED_LIMIT = 5
CREDENTIALS = "credentials"
HINT = (
    "The length of a list without a finished scan is not known. `partner-sync plan --ask` requests "
    "one page of it; `partner-sync sync` reads it."
)


class ListLength(NamedTuple):
    """What is known of the length of a list. `at_least`: it may be longer."""

    rows: int | None
    requests: int | None
    at_least: bool
    basis: str


async def _first_pages(
    session: AppSession, connection: Connection, streams: list[Stream]
) -> dict[str, PageOrError]:
    """Request one page of each list; a failure of the whole connection is under `credentials`."""
    pages = dict[str, PageOrError]()
    try:
        async with open_service(session, connection) as client:
            document = await read_description(session, client)
            for stream in streams:
                limit = sized(document, stream).limit
                try:
                    answer = await client.page(stream.path, 0, limit, lambda _attempt: None)
                    pages[stream.name] = answer.content
                except PartnerSyncError as error:
                    pages[stream.name] = error
    except PartnerSyncError as error:
        return {CREDENTIALS: error}
    return pages


def check_connections(
    session: AppSession, connections: list[str] | None, *, skip_refused: bool = False
) -> list[Row]:
    """Try connections (None: all): credentials, account, one page of each list.

    That includes skipped lists, so that it is seen when the account may read them. `skip_refused`
    lets a connection skip the lists that its account may not read, unless it may read none.
    """
    rows = list[Row]()
    for name, streams in session.lists(connections).items():
        connection = session.settings.connection(name)
        skipped = session.settings.skipped_by(connection)
        pages = loop.run(_first_pages(session, connection, streams + skipped))
        if skip_refused:
            _skip_refused(session, name, streams, pages)
        rows += _check_rows(session, name, pages)
    for row in rows:
        # The service may repeat a credential in what it says of an error.
        row["message"] = session.redactor.clean(row["message"])
        row["remedy"] = session.redactor.clean(row["remedy"])
    return rows


def _skip_refused(
    session: AppSession, name: str, streams: list[Stream], pages: Mapping[str, PageOrError]
) -> None:
    """Let a connection skip the lists that its account may not read, unless it may read none."""
    refused = [
        stream.name for stream in streams if isinstance(pages.get(stream.name), NotPermitted)
    ]
    if refused and len(refused) < len(streams):
        skip_streams(session.home.connections_file, name, refused)


def _check_rows(session: AppSession, name: str, pages: Mapping[str, PageOrError]) -> list[Row]:
    """Return a row for the credentials of a connection, if they are proven, and for each list."""
    # As it is in the file now: it may skip more lists than when they were asked for.
    connection = session.settings.connection(name)
    if CREDENTIALS not in pages:
        skipped = {stream: page for stream, page in pages.items() if stream in connection.skip}
        note_permissions(session, name, skipped)
    checks = dict[str, Row]()
    was_read = any(isinstance(page, ParsedPage) for page in pages.values())
    # The merchant surface has no whoami: only a list that was read proves its key.
    if was_read or connection.surface != "merchant":
        checks[CREDENTIALS] = _passed(f"accepted: {account_of(session, name)}")
    for checked, page in pages.items():
        if checked in connection.skip:
            checks[checked] = _check_skipped(name, checked, page)
        else:
            checks[checked] = _check(page)
    return [{"connection": name, "checked": checked, **row} for checked, row in checks.items()]


def _passed(message: str, remedy: str = "") -> Row:
    return {"passed": True, "message": message, "remedy": remedy}


def _check(page: PageOrError) -> Row:
    """Return the result of the check of a list, or of the credentials if these are refused."""
    if isinstance(page, PartnerSyncError):
        return {"passed": False, "message": str(page), "remedy": page.remedy}
    return _passed("can be read and has rows" if page.data else "can be read and is empty")


def _check_skipped(name: str, stream: str, page: PageOrError) -> Row:
    """Return the result of the check of a skipped list, which always passes."""
    if isinstance(page, ParsedPage):
        remedy = READ_AGAIN.format(connection=name, stream=stream)
        return _passed("is skipped, but can be read", remedy)
    reason = str(page).removesuffix(UNCHANGED).strip()
    if isinstance(page, NotPermitted):
        return _passed(
            "this account may not read it (403). It is skipped; `partner-sync check` and each "
            f"sync look again. {reason}"
        )
    return _passed(f"is skipped. Whether the account may read it is not known. {reason}")


def plan_sync(session: AppSession, connections: list[str] | None, *, ask: bool) -> list[Row]:
    """Return one row for each list that a sync of these connections (None: all) reads.

    `ask` requests one page of each list without a finished scan. Raises ServiceError then where a
    connection cannot be used. Numbers that are None are not known; `at_least`: they may be more;
    `basis` says what they rest on, or why a page could not be read.
    """
    rows = list[Row]()
    for name, streams in session.lists(connections).items():
        rows += _plan_connection(session, name, streams, ask=ask)
    return rows


def _plan_connection(
    session: AppSession, name: str, streams: list[Stream], *, ask: bool
) -> Iterator[Row]:
    """Yield a row for each list of a connection."""
    connection = session.settings.connection(name)
    actor = limiter_actor(session, connection)
    with session.metadata.transaction() as db:
        scans = {stream.name: newest_sealed(db, name, stream.name) for stream in streams}
        stated = db.get(RateLimitActor, actor)
    limit = (stated and stated.limit) or DOCUMENTED_LIMIT
    requests_per_second = min(limit, connection.max_requests_per_window or limit)
    pages = dict[str, PageOrError]()
    if ask:
        unread = [stream for stream in streams if not scans[stream.name]]
        pages = _require_pages(session, connection, unread)
    for stream in streams:
        length = _length(stream, scans[stream.name], pages.get(stream.name))
        seconds = None
        if length.requests is not None:
            seconds = math.ceil(length.requests / requests_per_second)
        yield {
            "connection": name,
            "stream": stream.name,
            "rows": length.rows,
            "requests": length.requests,
            "seconds": seconds,
            "at_least": length.at_least,
            "basis": length.basis,
        }


def _require_pages(
    session: AppSession, connection: Connection, streams: list[Stream]
) -> dict[str, PageOrError]:
    """Return one page of each list. Raises ServiceError if the connection cannot be used."""
    if not streams:
        return {}
    pages = loop.run(_first_pages(session, connection, streams))
    failure = pages.get(CREDENTIALS)
    if isinstance(failure, PartnerSyncError):
        raise failure
    return pages


def _length(stream: Stream, scan: Scan | None, page: PageOrError | None) -> ListLength:
    """Return what is known of the length of a list: of its newest scan, else of its first page."""
    if scan is not None:
        requests, changed = _requests(stream, scan)
        basis = f"scan of {scan.started_at:%Y-%m-%d %H:%M} UTC{changed}"
        return ListLength(scan.rows, requests, not scan.complete, basis)
    if isinstance(page, ParsedPage):
        return _length_by_page(stream, page)
    if page is None:
        return ListLength(None, None, at_least=False, basis="not known")
    basis = f"not known. {page} {page.remedy}".strip()
    return ListLength(None, None, at_least=False, basis=basis)


def _length_by_page(stream: Stream, page: ParsedPage) -> ListLength:
    rows = len(page.data)
    requests = 1
    has_more = bool(page.pagination.has_more)
    # Only a page that is not full, and says that it is the last, proves a length.
    at_least = has_more or rows >= (page.pagination.limit or 1)
    if has_more:
        rows += 1
    if at_least:
        requests += stream.passes
    return ListLength(rows, requests, at_least, "one page")


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
    are_all_known = len(known) == len(rows)
    bound = ""
    if not are_all_known or any(row["at_least"] for row in rows):
        bound = "at least "
    requests = sum(row["requests"] for row in known)
    seconds = sum(row["seconds"] for row in known)
    text = f"The next sync takes {bound}{requests:,} requests, {bound}{seconds:,} seconds."
    return text if are_all_known else f"{text} {HINT}"
