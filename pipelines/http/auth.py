"""Signatures: an API key on the merchant surface, a bearer token on the partner surface.

`ClientCredentials.send` renews the token: before it expires, and once if the service refuses it.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from http import HTTPStatus
from typing import Annotated, Any

import jwt
import msgspec

from pipelines.config.connections import Connection
from pipelines.core import errors
from pipelines.core.clock import Clock, utc_now
from pipelines.core.text import Redactor
from pipelines.http.retry import (
    LONGEST_WAIT_SECONDS,
    UNREADABLE,
    postponed,
    service_error,
    wait_seconds,
)
from pipelines.http.transport import MAY_PAUSE, Attempt, OnAttempt, Transport

RENEW_SHARE, RENEW_SECONDS = 0.1, 60.0  # of the lifetime, at most
WHOLE_SECOND = 1.0  # a JWT counts whole seconds: its first one may be nearly over
SECONDS_BETWEEN_TOKENS = 1.0
MAX_RENEWALS = 5  # of one request whose token expires while it waits
# h11 quotes a header value that is not allowed, so such a value must not reach it.
HEADER_VALUE = r"[!-~]+"

Send = Callable[[Mapping[str, str]], Awaitable[Attempt]]  # sends a request with these headers


@dataclass(eq=False, repr=False)
class ApiKey:
    """Signs requests with an API key. The key is read for each and kept nowhere."""

    connection: Connection
    redactor: Redactor

    def claims(self) -> dict[str, Any]:
        """Return nothing: a key says nothing of itself."""
        return {}

    async def send(self, send: Send, _on_refused: OnAttempt) -> Attempt:
        """Send a request with the key."""
        key = self.connection.read_secret()
        self.redactor.add(key)
        if not re.fullmatch(HEADER_VALUE, key):
            raise errors.ConfigurationError(
                f"The API key of connection `{self.connection.name}` holds characters that no "
                "HTTP header may hold. Nothing was requested.",
                "Copy the key again.",
            )
        return await send({"x-api-key": key})


class _TokenAnswer(msgspec.Struct):
    access_token: Annotated[str, msgspec.Meta(pattern=rf"\A{HEADER_VALUE}\Z")]
    expires_in: Annotated[int, msgspec.Meta(le=10**9)] = 3600  # "Token lifetime"


@dataclass(eq=False)
class _Token:
    """A bearer token; it expires at a time of the monotonic clock."""

    value: str = field(repr=False)
    life_seconds: float
    expires_at: float


@dataclass(eq=False, repr=False)
class ClientCredentials:
    """Signs requests with a bearer token that all requests of the connection share.

    One renewal at a time, at most one a second. The secret is read for each and kept nowhere.
    """

    connection: Connection
    transport: Transport
    redactor: Redactor
    clock: Clock

    def __post_init__(self) -> None:
        self._url = f"{self.connection.auth_url}/oauth/token"
        self._renewal = asyncio.Lock()
        self._not_before = float("-inf")
        self._request_seconds = 0.0  # what the last request took, its wait for a slot included
        self._token: _Token | None = None

    def claims(self) -> dict[str, Any]:
        """Return the claims of the token in use, unverified; empty without a token."""
        try:
            token = self._token.value if self._token else ""
            return dict(jwt.decode(token, options={"verify_signature": False}))
        except (jwt.InvalidTokenError, RecursionError):
            return {}

    async def send(self, send: Send, on_refused: OnAttempt) -> Attempt:
        """Send a request with a token; if it is refused, renew the token once and repeat.

        A token that expired while the request waited was not refused: that is not counted.
        """
        refusals = renewals = 0
        while True:
            token = await self._fresh_token()
            begun_at = self.clock.monotonic()
            answer = await send({"Authorization": f"Bearer {token.value}"})
            ended_at = self.clock.monotonic()
            self._request_seconds = ended_at - begun_at
            if answer.status != HTTPStatus.UNAUTHORIZED:
                return answer
            if self._token is token:
                self._token = None
            renewals += 1
            refusals += ended_at < token.expires_at
            if refusals > 1 or renewals > MAX_RENEWALS:
                return answer
            on_refused(replace(answer, error="The token was refused; it is renewed."))

    async def _fresh_token(self) -> _Token:
        """Return a token that does not expire before a request with it arrives."""
        async with self._renewal:
            if (token := self._token) is not None:
                share = min(RENEW_SECONDS, RENEW_SHARE * token.life_seconds)
                margin = max(share, self._request_seconds, WHOLE_SECOND)
                if self.clock.monotonic() + margin < token.expires_at:
                    return token
            self._token = await self._request_token()
            return self._token

    async def _request_token(self) -> _Token:
        """Return a new token. An answer is never quoted: it may hold a secret. Raises Postponed."""
        wait = self._not_before - self.clock.monotonic()
        if wait > LONGEST_WAIT_SECONDS:
            until = utc_now(self.clock) + timedelta(seconds=wait)
            raise postponed(self._url, until, self.connection.name)
        await self.clock.sleep(max(0.0, wait))
        asked_at, secret = self.clock.monotonic(), self.connection.read_secret()
        self._not_before = asked_at + SECONDS_BETWEEN_TOKENS
        self.redactor.add(secret)
        body = {
            "client_id": self.connection.client_id,
            "client_secret": secret,
            "audience": self.connection.audience,
            "grant_type": "client_credentials",
        }
        answer = await self.transport.post_for_token(self._url, body)
        try:
            given = msgspec.json.decode(answer.body or b"", type=_TokenAnswer, strict=False)
        except UNREADABLE:
            given = None
        if given is None or answer.status != HTTPStatus.OK:
            raise self._refused(answer)
        self.redactor.add(given.access_token)
        return _Token(given.access_token, given.expires_in, asked_at + given.expires_in)

    def _refused(self, answer: Attempt) -> errors.ServiceError:
        """Return the error for an answer that is not a token."""
        kind: type[errors.ServiceError] = errors.UnexpectedAnswer
        if answer.status in MAY_PAUSE:
            kind = errors.Unavailable
            asked = wait_seconds(answer.headers, answer.body, self.clock.time())
            self._not_before = self.clock.monotonic() + max(asked, SECONDS_BETWEEN_TOKENS)
        elif answer.status in {400, 401, 403}:
            kind = errors.AccessDenied
        return service_error(
            kind,
            f"The identity provider {self._url} gave no token (status {answer.status}).",
            "Check auth_url, client_id, secret and audience of connection "
            f"`{self.connection.name}` in connections.toml, then run `partner-sync check`.",
        )
