"""Opens a client of the service for one connection and confirms whose account it is."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pipelines.app.session import AppSession
from pipelines.config.connections import Connection
from pipelines.core.clock import utc_now
from pipelines.core.errors import IdentityChanged
from pipelines.http.client import ClientOptions, ServiceClient
from pipelines.http.identity import actor_key, service_identity
from pipelines.metadata import identities
from pipelines.metadata.tables import Identity
from pipelines.rate_limit.limiter import RateLimiter
from pipelines.rate_limit.shared import LimitOptions


def limiter_actor(session: AppSession, connection: Connection) -> str:
    """Return the actor under which the requests of a connection are counted."""
    with session.metadata.transaction() as db:
        pinned = identities.pinned_identity(db, connection.name)
    return actor_key(connection, pinned.identity if pinned else None)


@asynccontextmanager
async def open_client(session: AppSession, connection: Connection) -> AsyncIterator[ServiceClient]:
    """Yield a client that shares the rate limit of its actor with all processes."""
    settings = session.settings
    limiter = RateLimiter(
        session.metadata,
        limiter_actor(session, connection),
        session.clock,
        LimitOptions(
            max_requests_per_window=connection.max_requests_per_window,
            request_timeout_seconds=settings.request_timeout_seconds,
        ),
    )
    options = ClientOptions(settings.request_timeout_seconds, settings.use_proxy)
    client = ServiceClient(connection, options, limiter, session.redactor, session.clock)
    async with client:
        yield client


async def confirm_identity(
    session: AppSession, connection: Connection, client: ServiceClient
) -> str:
    """Return who the service says the caller is; pin it at the first time.

    Raises IdentityChanged where the credentials belong to another account than the data loaded
    before. The merchant surface has no whoami; there the connection's name is the identity.
    """
    whoami = {} if connection.surface == "merchant" else await client.whoami()
    found = service_identity(connection, whoami, client.claims())
    identity = Identity(
        connection=connection.name,
        base_url=connection.base_url,
        actor=found.actor,
        identity=dict(found.members),
        pinned_at=utc_now(session.clock),
    )
    with session.metadata.transaction() as db:
        pinned = identities.pin_identity(db, identity)
    if pinned.identity != identity.identity:
        raise IdentityChanged(
            f"The credentials of connection `{connection.name}` now belong to a different account "
            f"({found}) than the data loaded before. Nothing was read. Analysts still see the "
            "published version.",
            "Correct the credentials, or add a connection with another name for the new account.",
        )
    return str(found)
