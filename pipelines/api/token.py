"""Bearer tokens by client credentials: fetch, renew, once more on 401.

An `httpx.Auth` (Authentication, partner surface): each attempt is signed anew, since a retry loop
may outlive a token. The secret is read when a token is asked for and is kept nowhere.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Annotated, Any

import httpx
import jwt
import msgspec

from pipelines.api import problem
from pipelines.clock import Clock
from pipelines.errors import AccessDenied, ContractBroken, Unavailable
from pipelines.settings import Connection

SECONDS_BETWEEN_CALLS = 1.0
UNAUTHORIZED = 401


class _TokenResponse(msgspec.Struct):
    # Fit for a header: h11 would quote anything else in its refusal, and so in our log.
    access_token: Annotated[str, msgspec.Meta(pattern=r"\A[!-~]+\Z")]
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
        self._free_at = float("-inf")  # when the provider may be asked again
        self.token: Token | None = None

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Sign a request; on 401 renew a token that is still the current one and repeat once."""
        for _attempt in ("first", "renewed"):
            async with self._turn:
                if self.token is None or self._clock.monotonic() >= self.token.renew_at:
                    asked_at = await self._pause()
                    response = yield self._token_request(request.extensions["timeout"])
                    self.token = self._received(response, await response.aread(), asked_at)
                used = self.token
            request.headers["Authorization"] = f"Bearer {used.value}"
            response = yield request
            if response.status_code != UNAUTHORIZED:
                return
            if self.token is used:
                self.token = None

    async def _pause(self) -> float:
        """Wait until the provider may be asked; return the moment, on the monotonic clock."""
        while (wait := self._free_at - self._clock.monotonic()) > 0:
            await self._clock.sleep(wait)
        now = self._clock.monotonic()
        self._free_at = now + SECONDS_BETWEEN_CALLS
        return now

    def _token_request(self, timeout: dict[str, float | None]) -> httpx.Request:
        return httpx.Request(
            "POST",
            f"{self._connection.auth_url}/oauth/token",
            json={
                "client_id": self._connection.client_id,
                "client_secret": self._connection.secret.read(),
                "audience": self._connection.audience,
                "grant_type": "client_credentials",
            },
            extensions={"timeout": timeout},  # httpx sets it on the signed request only
        )

    def _received(self, response: httpx.Response, body: bytes, asked_at: float) -> Token:
        """Return the token of an answer; the body is never quoted, it may hold a secret."""
        where = f"{response.request.url.host}{response.request.url.path}"
        status = response.status_code
        if response.is_server_error or status in {408, 425, 429}:
            asked = problem.retry_after(response.headers, self._clock.now()) or 0.0
            self._free_at = max(self._free_at, self._clock.monotonic() + asked)
            raise Unavailable(f"no token: {status} from {where}")
        if status in {400, 401, 403}:
            raise AccessDenied(
                f"no token: {status}{_error_code(body)} from {where}: check client id, secret "
                f"and audience"
            )
        if not response.is_success:
            raise ContractBroken(f"no token: {status} from {where}; set auth_url")
        try:
            answer = msgspec.json.decode(body, type=_TokenResponse)
        except problem.UNREADABLE:
            raise ContractBroken(f"{where} answered, but not with a token") from None
        # Renewed min(60 s, 10 % of its life) before it expires.
        life = answer.expires_in - min(60.0, 0.1 * answer.expires_in)
        return Token(answer.access_token, asked_at + life)


def _error_code(body: bytes) -> str:
    try:
        error = msgspec.json.decode(body, type=_TokenError).error
    except problem.UNREADABLE:
        return ""
    return f" {problem.cleaned(error)}" if error else ""
