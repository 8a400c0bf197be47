"""Opens the service for one connection and confirms whose account it is."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlalchemy import update

from pipelines.app.session import AppSession
from pipelines.config.connections import Connection
from pipelines.core.clock import utc_now
from pipelines.core.errors import IdentityChanged
from pipelines.http.client import ClientOptions, ServiceClient
from pipelines.http.identity import ServiceIdentity, actor_key, service_identity
from pipelines.http.retry import LONGEST_WAIT_SECONDS
from pipelines.metadata import identities
from pipelines.metadata.tables import Identity, RateLimitSlot
from pipelines.rate_limit.limiter import RateLimiter
from pipelines.rate_limit.shared import LimitOptions


@dataclass(frozen=True)
class Service:
    """An open client, the actor that its requests count for, and whose account it is."""

    client: ServiceClient
    actor: str
    account: str


def limiter_actor(session: AppSession, connection: Connection) -> str:
    """Return the actor under which the requests of a connection are counted."""
    with session.metadata.transaction() as db:
        pinned = identities.pinned_identity(db, connection.name)
    return actor_key(connection, pinned.identity if pinned else None)


@asynccontextmanager
async def open_service(session: AppSession, connection: Connection) -> AsyncIterator[Service]:
    """Yield a client whose account is that of the data loaded before; pin it the first time.

    Raises ServiceError, ConfigurationError and IdentityChanged.
    """
    first = limiter_actor(session, connection)
    async with open_client(session, connection, first) as client:
        account = str(await _confirm_identity(session, connection, client))
        actor = limiter_actor(session, connection)
        if actor == first:
            yield Service(client, actor, account)
            return
    # The account is known from now on. All processes that use it share its limit, so the request
    # that asked for it counts there too.
    with session.metadata.transaction() as db:
        moved = update(RateLimitSlot).where(RateLimitSlot.actor == first)
        db.execute(moved.values(actor=actor))
    async with open_client(session, connection, actor) as client:
        yield Service(client, actor, account)


@asynccontextmanager
async def open_client(
    session: AppSession, connection: Connection, actor: str
) -> AsyncIterator[ServiceClient]:
    """Yield a client that shares the rate limit of its actor with all processes."""
    settings = session.settings
    limits = LimitOptions(
        max_requests_per_window=connection.max_requests_per_window,
        request_timeout_seconds=settings.request_timeout_seconds,
        longest_wait_seconds=LONGEST_WAIT_SECONDS,
    )
    options = ClientOptions(
        timeout_seconds=settings.request_timeout_seconds,
        use_proxy=settings.use_proxy,
        max_clock_difference_seconds=settings.max_clock_difference_hours * 3600,
    )
    limiter = RateLimiter(session.metadata, actor, session.clock, limits)
    async with ServiceClient(
        connection, options, limiter, session.redactor, session.clock
    ) as client:
        yield client


async def read_identity(
    session: AppSession, connection: Connection, client: ServiceClient
) -> tuple[ServiceIdentity, Identity]:
    """Ask the service who the caller is; return that and the row that would pin it.

    The merchant surface has no whoami; there the connection's name is the identity.
    """
    whoami = {} if connection.surface == "merchant" else await client.whoami()
    found = service_identity(connection, whoami, client.claims())
    row = Identity(
        connection=connection.name,
        base_url=connection.base_url,
        actor=found.actor,
        identity=dict(found.members),
        pinned_at=utc_now(session.clock),
    )
    return found, row


async def _confirm_identity(
    session: AppSession, connection: Connection, client: ServiceClient
) -> ServiceIdentity:
    found, row = await read_identity(session, connection, client)
    with session.metadata.transaction() as db:
        pinned = identities.pin_identity(db, row)
    if pinned.identity != found.members:
        raise IdentityChanged(
            f"The credentials of connection `{connection.name}` now belong to a different account "
            f"({found}) than the data loaded before. Nothing was read. Analysts still see the "
            "published version.",
            "Correct the credentials, or add a connection with another name for the new account. "
            "If it is the same account under a new identity, run "
            f"`partner-sync connections accept {connection.name}`.",
        )
    return found
