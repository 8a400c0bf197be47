"""Tries each connection before a sync: credentials, identity, one small page of each list."""

import asyncio
from dataclasses import dataclass

from pipelines.app.connect import open_service
from pipelines.app.session import AppSession
from pipelines.archive.records import parse_page
from pipelines.config.connections import Connection
from pipelines.core.errors import Forbidden, PartnerSyncError
from pipelines.http.client import Attempt, ServiceClient


@dataclass(frozen=True)
class Preflight:
    """One thing that was tried."""

    connection: str
    checked: str
    passed: bool
    message: str
    remedy: str = ""


def preflight(session: AppSession, connections: list[str] | None) -> list[Preflight]:
    """Try connections (None: all): one request for the identity and one for each list."""
    chosen = [
        session.settings.connection(name) for name in connections or session.settings.connections()
    ]
    return [each for one in chosen for each in asyncio.run(_try_connection(session, one))]


async def _try_connection(session: AppSession, connection: Connection) -> list[Preflight]:
    found: list[Preflight] = []
    try:
        async with open_service(session, connection) as service:
            message = f"accepted: {service.account}"
            found.append(Preflight(connection.name, "credentials", passed=True, message=message))
            for stream in session.settings.streams_of(connection):
                found += [await _try_list(session, service.client, connection, stream.name)]
    except PartnerSyncError as error:
        found.append(_failed(session, connection, "credentials", error))
    return found


async def _try_list(
    session: AppSession, client: ServiceClient, connection: Connection, stream: str
) -> Preflight:
    path = session.settings.all_streams()[stream].path
    try:
        attempt = await client.page(path, 0, 1, _ignore)
        page = parse_page(attempt.body or b"", 1)
    except PartnerSyncError as error:
        return _failed(session, connection, stream, error)
    rows = "has rows" if page.records else "is empty"
    return Preflight(connection.name, stream, passed=True, message=f"{path} can be read and {rows}")


def _failed(
    session: AppSession, connection: Connection, checked: str, error: PartnerSyncError
) -> Preflight:
    clean = session.redactor.clean
    remedy = error.remedy
    if isinstance(error, Forbidden) and checked != "credentials":
        remedy = f'To leave the list out, add skip = ["{checked}"] to [{connection.name}].'
    return Preflight(
        connection.name, checked, passed=False, message=clean(str(error)), remedy=clean(remedy)
    )


def _ignore(_attempt: Attempt) -> None:
    """Record nothing: a check writes no scan file."""
