"""Before a run: who we are to the service, and which of its lists we may read."""

from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.api import problem
from pipelines.api.client import Client
from pipelines.errors import ServiceError
from pipelines.streams.base import Stream


@dataclass(frozen=True)
class Answered:
    """What one route said; `error` is None where it let us in."""

    route: str
    words: str
    error: ServiceError | None = None


@dataclass(frozen=True)
class Report:
    """What every route said, whoami first."""

    routes: tuple[Answered, ...]

    @property
    def passed(self) -> bool:
        """Whether all of it may be read."""
        return all(each.error is None for each in self.routes)


async def ask(client: Client, streams: Iterable[Stream]) -> Report:
    """Call whoami, then ask each list for one record."""
    routes = [await _whoami(client)]
    if routes[0].error is None:
        routes += [await _list(client, stream) for stream in streams]
    return Report(tuple(routes))


async def _whoami(client: Client) -> Answered:
    try:
        await client.whoami()
    except ServiceError as error:
        return Answered("/v2/whoami", str(error), error)
    claims = client.claims()
    who = f"{claims.get('actor', 'actor unknown')} {claims.get('sub', '')}"
    return Answered("/v2/whoami", problem.cleaned(who))


async def _list(client: Client, stream: Stream) -> Answered:
    try:
        page = await client.page(stream, offset=0, limit=1)
    except ServiceError as error:
        return Answered(stream.path, str(error), error)
    return Answered(stream.path, "may be read" if page.rows else "may be read; it is empty")
