"""Who signs for a connection: each route accepts exactly one method (surfaces of the service)."""

from pipelines.api.apikey import ApiKey
from pipelines.api.token import ClientCredentials
from pipelines.clock import Clock
from pipelines.settings import Connection

Signature = ClientCredentials | ApiKey


def of(connection: Connection, clock: Clock) -> Signature:
    """Return what signs a connection's requests."""
    if connection.surface == "merchant":
        return ApiKey(connection)
    return ClientCredentials(connection, clock)
