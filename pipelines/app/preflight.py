"""Tries each connection before a sync: credentials, identity, one small page of each list."""

import asyncio
from dataclasses import dataclass

from pipelines.app.connect import confirm_identity, open_client
from pipelines.app.session import AppSession
from pipelines.archive.records import parse_page
from pipelines.config.connections import Connection
from pipelines.core.errors import Forbidden, PartnerSyncError
from pipelines.http.client import Attempt, ServiceClient


@dataclass(frozen=True)
class Preflight:
    """One thing that was tried."""

    connection: str
    subject: str
    passed: bool
    message: str
    remedy: str = ""


def preflight(session: AppSession, connections: list[str] | None) -> list[Preflight]:
    """Try connections (None: all): one request for the identity and one for each list."""
    names = connections or list(session.settings.connections())
    found: list[Preflight] = []
    for name in names:
        found += asyncio.run(_try_connection(session, session.settings.connection(name)))
    return found


async def _try_connection(session: AppSession, connection: Connection) -> list[Preflight]:
    name = connection.name
    found: list[Preflight] = []
    try:
        async with open_client(session, connection) as client:
            actor = await confirm_identity(session, connection, client)
            found.append(Preflight(name, "credentials", passed=True, message=f"accepted: {actor}"))
            for stream in session.settings.streams_of(connection):
                found += [await _try_list(session, client, name, stream.name)]
    except PartnerSyncError as error:
        message = session.redactor.clean(str(error))
        found.append(Preflight(name, "credentials", False, message, error.remedy))
    return found


async def _try_list(
    session: AppSession, client: ServiceClient, connection: str, stream: str
) -> Preflight:
    path = session.settings.all_streams()[stream].path
    try:
        attempt = await client.page(path, 0, 1, _ignore)
        page = parse_page(attempt.body or b"", 1)
    except PartnerSyncError as error:
        remedy = error.remedy
        if isinstance(error, Forbidden):
            remedy = f'To leave the list out, add skip = ["{stream}"] to [{connection}].'
        message = session.redactor.clean(str(error))
        return Preflight(connection, stream, passed=False, message=message, remedy=remedy)
    rows = "has rows" if page.records else "is empty"
    return Preflight(connection, stream, passed=True, message=f"{path} can be read and {rows}")


def _ignore(_attempt: Attempt) -> None:
    """Record nothing: a check writes no scan file."""
