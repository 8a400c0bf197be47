"""Before a run: who we are to the service, and which of its lists we may read.

On the merchant surface nobody can be asked who we are: one record of the first list stands for it.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pipelines.api import identity, problem
from pipelines.api.client import Client
from pipelines.api.skew import Skew
from pipelines.errors import Forbidden, PartnerSyncError, ServiceError
from pipelines.settings import Connection
from pipelines.state.identities import Identity
from pipelines.streams.base import Stream

WHOAMI = "/v2/whoami"


@dataclass(frozen=True)
class Answered:
    """What one route said; `error` is None where it let us in."""

    route: str
    words: str
    error: PartnerSyncError | None = None


@dataclass(frozen=True)
class Report:
    """What every route said, whoami first, and how far the clocks are from each other."""

    routes: tuple[Answered, ...]
    skew: Skew | None = None

    @property
    def passed(self) -> bool:
        """Whether all of it may be read."""
        return all(each.error is None for each in self.routes)


async def identify(client: Client, connection: Connection, streams: Sequence[Stream]) -> Identity:
    """Return who we are to the service, before a page of it is kept.

    Raises what whoami was refused with; on the merchant surface what one record was refused with,
    unless only that list is closed to us.
    """
    if connection.surface == "merchant":
        with suppress(Forbidden):
            await client.page(streams[0], offset=0, limit=1)
        return identity.of_name(connection)
    try:
        says = await client.whoami()
    except Forbidden as error:
        raise Forbidden(_explained(error)) from None
    return identity.of_whoami(connection, says, client.claims())


async def ask(client: Client, connection: Connection, streams: Iterable[Stream]) -> Report:
    """Call whoami, then ask each list for one record."""
    routes = [await _whoami(client)] if connection.surface == "partner" else []
    if all(each.error is None for each in routes):
        routes += [await _list(client, stream) for stream in streams]
    return Report(tuple(routes), client.skew)


async def _whoami(client: Client) -> Answered:
    try:
        await client.whoami()
    except Forbidden as error:
        return Answered(WHOAMI, _explained(error), error)
    except ServiceError as error:
        return Answered(WHOAMI, str(error), error)
    claims = client.claims()
    who = f"{claims.get('actor', 'actor unknown')} {claims.get('sub', '')}"
    return Answered(WHOAMI, problem.cleaned(who))


async def _list(client: Client, stream: Stream) -> Answered:
    try:
        page = await client.page(stream, offset=0, limit=1)
    except ServiceError as error:
        return Answered(stream.path, str(error), error)
    return Answered(stream.path, "may be read" if page.rows else "may be read; it is empty")


def _explained(error: Forbidden) -> str:
    return (
        f"{error}. The service knows us and does not say who we are: the client's actor or scopes "
        "do not open it; nothing was read"
    )
