"""Here: credentials. An API key signs merchant requests, a bearer token those of partners.

Not here: how a request leaves (transport), what an answer means (retry).
"""

import asyncio
import math
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any

import httpx
import jwt
import msgspec

from pipelines.core import errors
from pipelines.http import retry
from pipelines.http.transport import Transport

# Of the lifetime, at most.
RENEW_SHARE = 0.1
RENEW_SECONDS = 60.0
# A JWT counts whole seconds: its first one may be nearly over.
WHOLE_SECOND = 1.0
SECONDS_BETWEEN_TOKENS = 1.0
UNKNOWN_LIFE = 60.0  # seconds for which a token is used that does not say how long it lives
LONGEST_LIFE = 10**9  # seconds; more is no lifetime
GIVEN = range(200, 204)  # statuses of an answer that may hold a token
# h11 quotes a header value that is not allowed, so such a value must not reach it.
HEADER_VALUE = r"[!-~]+"


class _TokenAnswer(msgspec.Struct):
    access_token: Annotated[str, msgspec.Meta(pattern=rf"\A{HEADER_VALUE}\Z")]
    expires_in: msgspec.Raw = msgspec.Raw(b"null")


@dataclass(frozen=True, repr=False)
class Token:
    """A bearer token."""

    value: str
    renew_at: float  # by the monotonic clock, as below
    expires_at: float


@dataclass(eq=False, repr=False)
class SigningTransport(Transport):
    """A transport that signs; all requests of one connection share a token."""

    _token: Token | None = None
    _request_seconds: float = 0.0  # what the last request took
    _next_token_at: float = -math.inf
    _renewal: asyncio.Lock = field(default_factory=asyncio.Lock)

    def claims(self) -> dict[str, Any]:
        """Return the claims of the token in use, unverified; empty without a token."""
        return _claims(self._token.value) if self._token else {}

    async def _sign(self, request: httpx.Request) -> Token | None:
        """Sign a request that has its slot: a short token would expire while it waits for one."""
        if self.connection.surface == "merchant":
            request.headers["x-api-key"] = await self._secret()
            return None
        before = self._token
        token = await self._fresh_token()
        # A pause may have begun while a token was asked for, and be longer than the token lives.
        if token is not before:
            await self.limiter.wait_for_pause()
            before = token
            token = await self._fresh_token()
        if token is not before:
            await self.limiter.wait_for_pause()
        request.headers["Authorization"] = f"Bearer {token.value}"
        return token

    async def _secret(self) -> str:
        secret = await self.connection.read_secret_beside_others()
        self.redactor.add(secret)
        # HTTP Basic spells both in one text.
        self.redactor.add(f"{self.connection.client_id}:{secret}")
        if self.connection.surface == "merchant" and not re.fullmatch(HEADER_VALUE, secret):
            raise errors.ConfigurationError(
                f"The API key of connection `{self.connection.name}` contains characters "
                "that are invalid in an HTTP header. Nothing was requested.",
                "Copy the key again.",
            )
        return secret

    async def _fresh_token(self) -> Token:
        """Return a token that does not expire before a request with it arrives."""
        async with self._renewal:
            now = self.clock.monotonic()
            token = self._token
            # The next request may take as long as the last one.
            if not token or now >= min(token.renew_at, token.expires_at - self._request_seconds):
                token = await self._new_token()
                self._token = token
            return token

    async def _new_token(self) -> Token:
        """Ask for a token, at most once a second. The answer is never quoted: it is secret."""
        await self.clock.sleep(self._next_token_at - self.clock.monotonic())
        await self.limiter.wait_for_pause()
        asked_at = self.clock.monotonic()
        url = f"{self.connection.auth_url}/oauth/token"
        self._next_token_at = asked_at + SECONDS_BETWEEN_TOKENS
        body = {
            "client_id": self.connection.client_id,
            "client_secret": await self._secret(),
            "audience": self.connection.audience,
            "grant_type": "client_credentials",
        }
        answer = await self.send_without_slot("POST", url, body)
        if answer.failure:
            raise answer.failure
        if answer.status in GIVEN:
            with suppress(*retry.UNREADABLE):
                given = msgspec.json.decode(answer.body, type=_TokenAnswer)
                self.redactor.add(given.access_token)
                seconds = self._lifetime(given)
                margin = max(WHOLE_SECOND, min(RENEW_SECONDS, RENEW_SHARE * seconds))
                # It may have been made at any moment since it was asked for: the earliest counts.
                expires_at = asked_at + seconds
                return Token(given.access_token, expires_at - margin, expires_at)
        raise retry.KINDS.get(answer.status, errors.UnexpectedAnswer)(
            f"The identity provider {url} gave no token (status {answer.status})."
            f"{self.connection.doubt_about_secret()}",
            "Check auth_url, client_id, secret and audience of connection "
            f"`{self.connection.name}` in connections.toml, then run `partner-sync check`.",
        )

    def _lifetime(self, given: _TokenAnswer) -> float:
        """Return the seconds that a new token lives: as told, else by its claims, else a minute."""
        told = _seconds(given.expires_in)
        if told:
            return told
        claims = _claims(given.access_token)
        if "exp" in claims:
            with suppress(TypeError):  # a claim that is no number
                seconds = claims["exp"] - claims.get("iat", self.clock.time())
                if 0 < seconds <= LONGEST_LIFE:
                    return float(seconds)
        return UNKNOWN_LIFE


def _seconds(value: msgspec.Raw) -> float:
    """Return a lifetime that is a number or its text; 0 for anything else, and beyond bounds."""
    text = bytes(value).decode().strip('" ')
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,20})?([eE]\+?[0-9])?", text):
        return 0.0
    seconds = float(text)
    return seconds if seconds <= LONGEST_LIFE else 0.0


def _claims(token: str) -> dict[str, Any]:
    """Return the claims of a token, unverified; empty if it is no JWT."""
    try:
        return dict(jwt.decode(token, options={"verify_signature": False}))
    except (jwt.InvalidTokenError, RecursionError):
        return {}
