"""Bearer tokens by client credentials: fetch, renew, once more on 401.

An `httpx.Auth` (Authentication, partner surface): each attempt is signed anew, since a retry loop
may outlive a token. The secret is read when a token is asked for and is kept nowhere.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import httpx
import jwt
import msgspec

from pipelines.api.problem import cleaned
from pipelines.clock import Clock
from pipelines.errors import AccessDenied, ContractBroken, Unavailable
from pipelines.settings import Connection

SECONDS_BETWEEN_CALLS = 1.0
UNAUTHORIZED = 401


class _TokenResponse(msgspec.Struct):
    access_token: str
    expires_in: int


class _TokenError(msgspec.Struct):
    error: str = ""


@dataclass(frozen=True)
class Token:
    """A token in use; `renew_at` in seconds of the monotonic clock."""

    value: str = field(repr=False)
    renew_at: float

    def claims(self) -> dict[str, Any]:
        """Return what the token says of itself, unverified: to show, never to trust."""
        try:
            return dict(jwt.decode(self.value, options={"verify_signature": False}))
        except jwt.InvalidTokenError:
            return {}


class ClientCredentials(httpx.Auth):
    """Signs requests of one connection; one token call at a time, at most one a second."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._turn = asyncio.Lock()
        self._asked_at = float("-inf")
        self.token: Token | None = None

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Sign a request; on 401 renew a token that is still the current one and repeat once."""
        for _attempt in ("first", "renewed"):
            async with self._turn:
                if self.token is None or self._clock.monotonic() >= self.token.renew_at:
                    await self._pause()
                    response = yield self._token_request()
                    self.token = self._received(response, await response.aread())
                used = self.token
            request.headers["Authorization"] = f"Bearer {used.value}"
            response = yield request
            if response.status_code != UNAUTHORIZED:
                return
            if self.token is used:
                self.token = None

    async def _pause(self) -> None:
        wait = self._asked_at + SECONDS_BETWEEN_CALLS - self._clock.monotonic()
        if wait > 0:
            await self._clock.sleep(wait)
        self._asked_at = self._clock.monotonic()

    def _token_request(self) -> httpx.Request:
        return httpx.Request(
            "POST",
            f"{self._connection.auth_url}/oauth/token",
            json={
                "client_id": self._connection.client_id,
                "client_secret": self._connection.secret.read(),
                "audience": self._connection.audience,
                "grant_type": "client_credentials",
            },
        )

    def _received(self, response: httpx.Response, body: bytes) -> Token:
        """Return the token of an answer; the body is never quoted, it may hold a secret."""
        where = f"{response.request.url.host}{response.request.url.path}"
        if response.is_server_error or response.status_code in {408, 425, 429}:
            raise Unavailable(f"no token: {response.status_code} from {where}")
        if not response.is_success:
            code = _error_code(body)
            raise AccessDenied(
                f"no token: {response.status_code}{code} from {where}: check client id, secret "
                f"and audience"
            )
        try:
            answer = msgspec.json.decode(body, type=_TokenResponse)
        except msgspec.MsgspecError:
            raise ContractBroken(f"{where} answered, but not with a token") from None
        # Renewed min(60 s, 10 % of its life) before it expires.
        life = answer.expires_in - min(60.0, 0.1 * answer.expires_in)
        return Token(answer.access_token, self._asked_at + life)


def _error_code(body: bytes) -> str:
    try:
        error = msgspec.json.decode(body, type=_TokenError).error
    except msgspec.MsgspecError:
        return ""
    return f" {cleaned(error)}" if error else ""
