"""Signatures: bearer tokens by client credentials on the partner surface, API keys on the other."""

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import Annotated, Any

import httpx
import jwt
import msgspec

from pipelines.config.connections import Connection
from pipelines.core.clock import Clock, utc_now
from pipelines.core.errors import AccessDenied, ConfigurationError, Unavailable, UnexpectedAnswer
from pipelines.core.text import Redactor, printable
from pipelines.http.problems import (
    UNCHANGED,
    UNREADABLE,
    organization_disabled,
    read_problem,
    wait_seconds,
)
from pipelines.http.retry import LONGEST_WAIT_SECONDS, postponed

DEFAULT_LIFE_SECONDS = 3600  # "Token lifetime"
LONGEST_LIFE_SECONDS = 10**9  # more is not a lifetime
RENEW_SHARE, RENEW_SECONDS = 0.1, 60.0  # of the lifetime, at most
WHOLE_SECOND = 1.0  # a JWT counts whole seconds: its first one may be nearly over
SECONDS_BETWEEN_TOKENS = 1.0
MAX_SIGNATURES = 6  # of one request whose token expires while it waits
# h11 quotes a header value that is not allowed, so such a value must not reach it.
HEADER_VALUE = r"[!-~]+"


class _TokenAnswer(msgspec.Struct):
    access_token: Annotated[str, msgspec.Meta(pattern=rf"\A{HEADER_VALUE}\Z")]
    expires_in: Annotated[int, msgspec.Meta(le=LONGEST_LIFE_SECONDS)] | None = None


class _TokenError(msgspec.Struct):
    error: str = ""


@dataclass(eq=False)
class _Token:
    """A bearer token; times are of the monotonic clock."""

    value: str = field(repr=False)
    asked_at: float
    life_seconds: float

    def expired(self, now: float, margin_seconds: float = 0.0) -> bool:
        """Return whether it has expired, or does within the margin."""
        return now + margin_seconds >= self.asked_at + self.life_seconds


class ClientCredentials(httpx.Auth):
    """Signs requests with a bearer token that all requests of the connection share.

    The token is renewed before it expires, and once if the service refuses it. One renewal at a
    time, at most one a second. The secret is read for each and kept nowhere.
    """

    def __init__(self, connection: Connection, redactor: Redactor, clock: Clock) -> None:
        self._connection = connection
        self._redactor = redactor
        self._clock = clock
        self._renewal = asyncio.Lock()
        self._not_before = float("-inf")
        self._request_seconds = 0.0  # what the last request took, its wait for a slot included
        self._token: _Token | None = None

    def claims(self) -> dict[str, Any]:
        """Return the claims of the token in use, unverified; empty without a token."""
        return _claims(self._token.value) if self._token else {}

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Sign a request; if its token is refused, renew the token once and repeat.

        A token that expired while the request waited was not refused: that is not counted.
        """
        if not same_origin(request.url, self._connection.base_url):
            yield request
            return
        refusals = 0
        for _ in range(MAX_SIGNATURES):
            async with self._renewal:
                if self._is_stale():
                    asked_at = await self._wait_for_provider()
                    response = yield self._token_request()
                    self._token = self._received(response, asked_at)
                token = self._token
            if token is None:
                raise AssertionError("a renewal gives a token or raises")
            request.headers["Authorization"] = f"Bearer {token.value}"
            sent_at = self._clock.monotonic()
            response = yield request
            self._request_seconds = self._clock.monotonic() - sent_at
            if not self._renews(response):
                return
            refusals += not token.expired(self._clock.monotonic())
            if self._token is token:
                self._token = None
            if refusals > 1:
                return

    def _is_stale(self) -> bool:
        """Return whether the token would expire before a request with it arrives."""
        if self._token is None:
            return True
        share = min(RENEW_SECONDS, RENEW_SHARE * self._token.life_seconds)
        margin = max(share, self._request_seconds, WHOLE_SECOND)
        return self._token.expired(self._clock.monotonic(), margin)

    def _renews(self, response: httpx.Response) -> bool:
        """Return whether an answer means that another token may help."""
        if response.status_code != HTTPStatus.UNAUTHORIZED:
            return False
        problem = read_problem(response, self._redactor, self._clock.time())
        return not organization_disabled(problem)

    async def _wait_for_provider(self) -> float:
        """Wait until the identity provider may be asked; return that moment. Raises Postponed."""
        while (wait := self._not_before - self._clock.monotonic()) > 0:
            if wait > LONGEST_WAIT_SECONDS:
                place = f"{self._connection.auth_url}/oauth/token"
                until = utc_now(self._clock) + timedelta(seconds=wait)
                raise postponed(place, until, self._connection.name)
            await self._clock.sleep(wait)
        now = self._clock.monotonic()
        self._not_before = now + SECONDS_BETWEEN_TOKENS
        return now

    def _token_request(self) -> httpx.Request:
        secret = self._connection.read_secret()
        self._redactor.add(secret)
        return httpx.Request(
            "POST",
            f"{self._connection.auth_url}/oauth/token",
            json={
                "client_id": self._connection.client_id,
                "client_secret": secret,
                "audience": self._connection.audience,
                "grant_type": "client_credentials",
            },
            headers={"Accept-Encoding": "gzip"},
        )

    def _received(self, response: httpx.Response, asked_at: float) -> _Token:
        """Return the token of an answer. The body is never quoted: it may hold a secret."""
        if response.status_code != HTTPStatus.OK:
            raise self._refused(response)
        try:
            answer = msgspec.json.decode(response.content, type=_TokenAnswer, strict=False)
        except UNREADABLE:
            raise self._not_a_token() from None
        self._redactor.add(answer.access_token)
        return _Token(answer.access_token, asked_at, _life_seconds(answer))

    def _refused(self, response: httpx.Response) -> Exception:
        status = response.status_code
        place = f"{self._connection.auth_url}/oauth/token"
        message = f"The identity provider {place} gave no token (status {status}"
        if response.is_server_error or status in {408, 425, 429}:
            asked = wait_seconds(response.headers, response.content, self._clock.time())
            self._not_before = self._clock.monotonic() + (asked or SECONDS_BETWEEN_TOKENS)
            return Unavailable(f"{message}).")
        if status in {400, 401, 403}:
            return AccessDenied(
                f"{message}{self._error_code(response.content)}). {UNCHANGED}",
                f"Check client_id, secret and audience of connection `{self._connection.name}` in "
                "connections.toml, then run `partner-sync check`.",
            )
        return self._not_a_token()

    def _error_code(self, body: bytes) -> str:
        try:
            error = msgspec.json.decode(body, type=_TokenError).error
        except UNREADABLE:
            return ""
        return f", {printable(self._redactor.clean(error), 60)}" if error else ""

    def _not_a_token(self) -> UnexpectedAnswer:
        return UnexpectedAnswer(
            f"{self._connection.auth_url}/oauth/token answered, but not with a token. {UNCHANGED}",
            f"Correct auth_url of connection `{self._connection.name}` in connections.toml.",
        )


class ApiKeyAuth(httpx.Auth):
    """Signs requests with an API key. The key is read for each and kept nowhere."""

    def __init__(self, connection: Connection, redactor: Redactor) -> None:
        self._connection = connection
        self._redactor = redactor

    def claims(self) -> dict[str, Any]:
        """Return nothing: a key says nothing of itself."""
        return {}

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Sign a request to the connection's own service; any other goes unsigned."""
        if same_origin(request.url, self._connection.base_url):
            request.headers["x-api-key"] = self._key()
        yield request

    def _key(self) -> str:
        key = self._connection.read_secret()
        self._redactor.add(key)
        if not re.fullmatch(HEADER_VALUE, key):
            raise ConfigurationError(
                f"The API key of connection `{self._connection.name}` holds characters that no "
                "HTTP header may hold. Nothing was requested.",
                "Copy the key again.",
            )
        return key


def same_origin(url: httpx.URL, service: str) -> bool:
    """Return whether a request goes to the service: the same scheme, host and port."""
    own = httpx.URL(service)
    return (url.scheme, url.host, url.port) == (own.scheme, own.host, own.port)


def _claims(token: str) -> dict[str, Any]:
    try:
        return dict(jwt.decode(token, options={"verify_signature": False}))
    except (jwt.InvalidTokenError, RecursionError):
        return {}


def _life_seconds(answer: _TokenAnswer) -> float:
    """Return the shorter life of what the answer and the token say; an hour if neither does."""
    claims = _claims(answer.access_token)
    lives = [] if answer.expires_in is None else [float(answer.expires_in)]
    issued, expires = claims.get("iat"), claims.get("exp")
    if isinstance(issued, int) and isinstance(expires, int):
        lives += [float(life) for life in (expires - issued,) if 0 <= life <= LONGEST_LIFE_SECONDS]
    return min(lives, default=float(DEFAULT_LIFE_SECONDS))
