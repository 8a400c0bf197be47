"""Bearer tokens by client credentials: fetch, renew, once more on 401.

An `httpx.Auth` (Authentication, partner surface): each attempt is signed anew, since a retry loop
may outlive a token. The secret is read when a token is asked for and is kept nowhere. All clients
of an event loop share what one set of credentials was given: one token, one call at a time.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Annotated, Any
from weakref import WeakKeyDictionary

import httpx
import jwt
import msgspec

from pipelines.api import problem
from pipelines.api.origin import same_origin
from pipelines.clock import Clock
from pipelines.errors import AccessDenied, ContractBroken, Unavailable
from pipelines.settings import Connection

SECONDS_BETWEEN_CALLS = 1.0
SIGNATURES = 6  # of one attempt at a request, at most
UNAUTHORIZED = 401


class _TokenResponse(msgspec.Struct):
    # Fit for a header: h11 would quote anything else in its refusal, and so in our log.
    access_token: Annotated[str, msgspec.Meta(pattern=r"\A[!-~]+\Z")]
    expires_in: int


class _TokenError(msgspec.Struct):
    error: str = ""


@dataclass(eq=False)
class Token:
    """A token in use; `renew_at` in seconds of the monotonic clock.

    `instead` says that it was asked for because another was refused, `accepted` that it opened
    something since.
    """

    value: str = field(repr=False)
    renew_at: float
    instead: bool
    accepted: bool = False

    def claims(self) -> dict[str, Any]:
        """Return what the token says of itself, unverified: to show, never to trust."""
        try:
            return dict(jwt.decode(self.value, options={"verify_signature": False}))
        except jwt.InvalidTokenError:
            return {}


@dataclass(eq=False)
class _Holder:
    """What everybody with the same credentials shares; `free_at`: when to ask again at most."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    free_at: float = float("-inf")
    token: Token | None = None
    refused: bool = False


_Credentials = tuple[str, str, str]
# By event loop: a lock is of one loop, and a loop ends with its run, so that no token outlives it.
_HOLDERS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Credentials, _Holder]] = (
    WeakKeyDictionary()
)


class ClientCredentials(httpx.Auth):
    """Signs requests of one connection; one token call at a time, at most one a second."""

    rejected = "token rejected: check audience and client"

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._service = httpx.URL(connection.base_url)
        self._holder: _Holder | None = None

    @property
    def token(self) -> Token | None:
        """The token in use, None before the first."""
        return self._holder.token if self._holder else None

    def claims(self) -> dict[str, Any]:
        """Return what the token in use says of itself, unverified; empty before the first."""
        return self.token.claims() if self.token else {}

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Sign a request; repeat it where its token was refused and another may do.

        A token that was renewed for a refusal and is refused before it opened anything is the end:
        the next one would be, too. So is the last signature, for a token that always comes late.
        """
        if not same_origin(request.url, self._service):
            yield request
            return
        holder = self._holder = self._shared()
        for _signature in range(SIGNATURES):
            async with holder.turn:
                if holder.token is None or self._clock.monotonic() >= holder.token.renew_at:
                    asked_at = await self._pause(holder)
                    response = yield self._token_request(request.extensions["timeout"])
                    body = await response.aread()
                    holder.token = self._received(holder, response, body, asked_at)
                    holder.refused = False
                used = holder.token
            request.headers["Authorization"] = f"Bearer {used.value}"
            response = yield request
            if response.status_code != UNAUTHORIZED:
                used.accepted |= response.is_success
                return
            if holder.token is used:
                holder.token, holder.refused = None, True
            late = self._clock.monotonic() >= used.renew_at  # old, which is no verdict on it
            if used.instead and not used.accepted and not late:
                return

    def _shared(self) -> _Holder:
        of_loop = _HOLDERS.setdefault(asyncio.get_running_loop(), {})
        own = self._connection
        return of_loop.setdefault((own.auth_url, own.client_id, own.audience), _Holder())

    async def _pause(self, holder: _Holder) -> float:
        """Wait until the provider may be asked; return the moment, on the monotonic clock."""
        while (wait := holder.free_at - self._clock.monotonic()) > 0:
            await self._clock.sleep(wait)
        now = self._clock.monotonic()
        holder.free_at = now + SECONDS_BETWEEN_CALLS
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

    def _received(
        self, holder: _Holder, response: httpx.Response, body: bytes, asked_at: float
    ) -> Token:
        """Return the token of an answer; the body is never quoted, it may hold a secret."""
        where = f"{response.request.url.host}{response.request.url.path}"
        status = response.status_code
        if response.is_server_error or status in {408, 425, 429}:
            asked = problem.retry_after(response.headers, self._clock.wall()) or 0.0
            holder.free_at = max(holder.free_at, self._clock.monotonic() + asked)
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
        return Token(answer.access_token, asked_at + _life(answer.expires_in), holder.refused)


def _life(expires_in: int) -> float:
    """Return the seconds for which to use a token: all but 60, 10 % of a shorter life.

    All but one at the least: a JWT counts in whole seconds, and those of its first one that were
    over when it was made are no part of its life.
    """
    return expires_in - max(1.0, min(60.0, 0.1 * expires_in))


def _error_code(body: bytes) -> str:
    try:
        error = msgspec.json.decode(body, type=_TokenError).error
    except problem.UNREADABLE:
        return ""
    return f" {problem.cleaned(error)}" if error else ""
