"""Signs requests: an API key on the merchant surface, a bearer token on the partner surface."""

import asyncio
import math
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any

import jwt
import msgspec

from pipelines.core import errors
from pipelines.http import retry
from pipelines.http.retry import Attempt
from pipelines.http.transport import Transport

RENEW_SHARE, RENEW_SECONDS = 0.1, 60.0  # of the lifetime, at most
WHOLE_SECOND = 1.0  # a JWT counts whole seconds: its first one may be nearly over
SECONDS_BETWEEN_TOKENS = 1.0
# h11 quotes a header value that is not allowed, so such a value must not reach it.
HEADER_VALUE = r"[!-~]+"


class _TokenAnswer(msgspec.Struct):
    access_token: Annotated[str, msgspec.Meta(pattern=rf"\A{HEADER_VALUE}\Z")]
    expires_in: Annotated[int, msgspec.Meta(le=10**9)] = 3600  # "Token lifetime"


@dataclass(frozen=True, repr=False)
class _Token:
    value: str
    renew_at: float  # by the monotonic clock, as below
    expires_at: float


@dataclass(eq=False, repr=False)
class SigningTransport(Transport):
    """Signs the requests of one connection, which share a token. The secret is not kept."""

    _token: _Token | None = None
    _request_seconds: float = 0.0  # what the last request took
    _not_before: float = -math.inf
    _renewal: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def get(self, path: str, params: Mapping[str, int]) -> Attempt:
        """Send a signed request. If its token is refused, the next try has a new one.

        Raises ConfigurationError, ServiceError.
        """
        request = self.http.build_request("GET", path, params=params)
        if self.connection.surface == "merchant":
            request.headers["x-api-key"] = self._secret()
            return await self.send_in_slot(request)
        token = await self._fresh_token()  # no slot is held while the provider is asked

        async def sign() -> None:
            nonlocal token  # a short one expires while the request waits for a slot
            if (fresh := await self._fresh_token()) is not token:
                await self.limiter.wait_for_pause()  # another may have been asked for it meanwhile
            token = fresh
            request.headers["Authorization"] = f"Bearer {token.value}"

        attempt = await self.send_in_slot(request, sign)
        self._request_seconds = attempt.trip or 0.0
        if attempt.status != HTTPStatus.UNAUTHORIZED:
            return attempt
        if self._token is token:
            self._token = None
        error = retry.error_of_status(attempt, path, self.connection, self.redactor)
        is_valid = self.clock.monotonic() < token.expires_at
        kind = retry.TokenRefused if is_valid else errors.Unavailable
        attempt.failure = kind(str(error), error.remedy)
        return attempt

    def claims(self) -> dict[str, Any]:
        """Return the claims of the token in use, unverified; empty without a token."""
        try:
            token = self._token.value if self._token else ""
            return dict(jwt.decode(token, options={"verify_signature": False}))
        except (jwt.InvalidTokenError, RecursionError):
            return {}

    def _secret(self) -> str:
        secret = self.connection.read_secret()
        self.redactor.add(secret)
        self.redactor.add(f"{self.connection.client_id}:{secret}")  # as HTTP Basic spells both
        if self.connection.surface == "merchant" and not re.fullmatch(HEADER_VALUE, secret):
            raise errors.ConfigurationError(
                f"The API key of connection `{self.connection.name}` contains characters "
                "that are invalid in an HTTP header. Nothing was requested.",
                "Copy the key again.",
            )
        return secret

    async def _fresh_token(self) -> _Token:
        """Return a token that does not expire before a request with it arrives."""
        async with self._renewal:
            now, token = self.clock.monotonic(), self._token
            if not token or now >= min(token.renew_at, token.expires_at - self._request_seconds):
                token = self._token = await self._new_token()
            return token

    async def _new_token(self) -> _Token:
        """Ask for a token, at most once a second. The answer is never quoted: it is secret."""
        await self.clock.sleep(self._not_before - self.clock.monotonic())
        await self.limiter.wait_for_pause()  # also one that a run before was asked for
        asked_at, url = self.clock.monotonic(), f"{self.connection.auth_url}/oauth/token"
        self._not_before = asked_at + SECONDS_BETWEEN_TOKENS
        body = {
            "client_id": self.connection.client_id,
            "client_secret": self._secret(),
            "audience": self.connection.audience,
            "grant_type": "client_credentials",
        }
        request = self.http.build_request("POST", url, json=body)
        answer = Attempt()
        await self.send(request, answer, AsyncExitStack())  # it needs no slot
        if answer.failure:
            raise answer.failure
        if answer.status == HTTPStatus.OK:
            with suppress(*retry.UNREADABLE):
                given = msgspec.json.decode(answer.body, type=_TokenAnswer, strict=False)
                self.redactor.add(given.access_token)
                expires_at = asked_at + given.expires_in
                margin = max(WHOLE_SECOND, min(RENEW_SECONDS, RENEW_SHARE * given.expires_in))
                return _Token(given.access_token, expires_at - margin, expires_at)
        if answer.status in retry.MAY_PAUSE:
            self.limiter.block(retry.wait_seconds(answer, self.clock.time()))
        kinds = retry.KINDS | dict.fromkeys([400, 403], errors.AccessDenied)
        raise kinds.get(answer.status, errors.UnexpectedAnswer)(
            f"The identity provider {url} gave no token (status {answer.status}).",
            "Check auth_url, client_id, secret and audience of connection "
            f"`{self.connection.name}` in connections.toml, then run `partner-sync check`.",
        )
