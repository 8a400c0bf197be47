"""Here: looks again at the lists that a connection skips, and notes which its account may read.

Not here: the finding about them (checks.connections), the lists that `init` skips (plan).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from pipelines.app.description import Json, bounds
from pipelines.app.session import AppSession
from pipelines.archive.envelope import ParsedPage
from pipelines.checks.connections import list_readable
from pipelines.core.errors import NotPermitted, PartnerSyncError
from pipelines.core.finding import Severity
from pipelines.http.client import ServiceClient
from pipelines.metadata.tables import FindingRow

CODE: Final = list_readable.code
PageOrError = ParsedPage | PartnerSyncError


async def look_again(session: AppSession, client: ServiceClient, document: Json) -> None:
    """Ask once for one record of each skipped list, and note the answers.

    A failure other than a refusal says nothing about the account: the next sync asks again.
    """
    pages = dict[str, PageOrError]()
    for stream in session.settings.skipped_by(client.connection):
        least = bounds(document, stream.path).least or 1
        try:
            answer = await client.page(stream.path, 0, least, lambda _attempt: None, once=True)
            pages[stream.name] = answer.content
        except PartnerSyncError as error:
            pages[stream.name] = error
    note_permissions(session, client.connection.name, pages)


def note_permissions(session: AppSession, name: str, pages: Mapping[str, PageOrError]) -> None:
    """Keep which skipped lists of a connection are refused, and which no longer are.

    A refused list has a cleared finding, which is open once the list can be read. A list without
    one was never refused: a person skips it on purpose, and nothing is said about it.
    """
    now = session.clock.utc_now()
    with session.metadata.transaction() as db:
        known = db.query(FindingRow).filter_by(code=CODE, connection=name)
        rows = {row.stream: row for row in known}
        # What was not asked for is no longer skipped: each sync reads it.
        for stream in rows.keys() - pages.keys():
            db.delete(rows[stream])
        for stream, page in pages.items():
            row = rows.get(stream)
            if isinstance(page, NotPermitted):
                row = row or _refused(name, stream, now)
                row.last_seen = now
                row.cleared_at = now
                db.add(row)
            elif isinstance(page, ParsedPage) and row and row.cleared_at:
                row.first_seen = now
                row.last_seen = now
                row.cleared_at = None


def _refused(name: str, stream: str, now: datetime) -> FindingRow:
    return FindingRow(
        code=CODE,
        severity=Severity.INFO,
        connection=name,
        stream=stream,
        subject="",
        message="The account may not read this list (403).",
        remedy="",
        blocks=False,
        first_seen=now,
        last_seen=now,
    )
