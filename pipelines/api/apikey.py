"""API keys: the signature of the merchant surface (Authentication, merchant surface, rule 1).

An `httpx.Auth`, as tokens are. The key is read for every attempt, so that a rotated one is used at
once, and kept nowhere. A 401 is the answer: there is nothing to renew.
"""

import hashlib
import re
from collections.abc import Generator
from typing import Any

import httpx

from pipelines.api.origin import same_origin
from pipelines.errors import ConfigurationError
from pipelines.settings import Connection

HEADER = "x-api-key"
FINGERPRINT = 16  # hexadecimal digits


class ApiKey(httpx.Auth):
    """Signs requests of one merchant connection."""

    rejected = "API key rejected: check that it is whole and was not revoked"

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._service = httpx.URL(connection.base_url)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Sign a request to the connection's own service; to any other it goes unsigned."""
        if same_origin(request.url, self._service):
            request.headers[HEADER] = self._key()
        yield request

    def claims(self) -> dict[str, Any]:
        """Return nothing: a key says nothing of itself."""
        return {}

    def fingerprint(self) -> str:
        """Return what tells this key from others at the host, and nothing about the key itself."""
        salted = f"{self._service.host}\n{self._key()}"
        return hashlib.sha256(salted.encode()).hexdigest()[:FINGERPRINT]

    def _key(self) -> str:
        key = self._connection.secret.read()
        # h11 would quote anything else in its refusal, and so in our log.
        if not re.fullmatch(r"[!-~]+", key):
            raise ConfigurationError(
                f"the API key of connection {self._connection.name} holds characters that no "
                "header may: copy it again"
            )
        return key
