"""What the rest of partner-sync sees of the service: one request, repeated until it is answered.

Requests are signed here, with an API key on the merchant surface and a bearer token on the partner
surface. They leave through transport.py; retry.py says what an answer means, and what is repeated.
"""

import asyncio
import logging
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

import httpx
import jwt
import msgspec

from pipelines.archive.envelope import empty_page
from pipelines.archive.lines import cached_seconds
from pipelines.archive.records import parse_page
from pipelines.core import errors
from pipelines.core.text import printable
from pipelines.http import retry
from pipelines.http.retry import Attempt
from pipelines.http.transport import Transport
from pipelines.rate_limit.headers import read_date

__all__ = ["Attempt", "ServiceClient"]

RENEW_SHARE, RENEW_SECONDS = 0.1, 60.0  # of the lifetime, at most
WHOLE_SECOND = 1.0  # a JWT counts whole seconds: its first one may be nearly over
SECONDS_BETWEEN_TOKENS = 1.0
CLOCK_WARN_SECONDS = 300.0
OLDEST_CACHED_SECONDS = 300  # of a page that a cache kept
UNKNOWN_LIFE = 60.0  # seconds for which a token is used that does not say how long it lives
LONGEST_LIFE = 10**9  # seconds; more is no lifetime
GIVEN = range(200, 204)  # statuses of an answer that may hold a token
# h11 quotes a header value that is not allowed, so such a value must not reach it.
HEADER_VALUE = r"[!-~]+"

OnAttempt = Callable[[Attempt], object]
logger = logging.getLogger(__name__)


class _TokenAnswer(msgspec.Struct):
    access_token: Annotated[str, msgspec.Meta(pattern=rf"\A{HEADER_VALUE}\Z")]
    expires_in: msgspec.Raw = msgspec.Raw(b"null")


@dataclass(frozen=True, repr=False)
class _Token:
    value: str
    renew_at: float  # by the monotonic clock, as below
    expires_at: float


@dataclass(eq=False, repr=False)
class ServiceClient(Transport):
    """Asks one service on behalf of one connection, whose requests share a token.

    Use it within `async with client.http`. The secret is not kept.
    """

    _token: _Token | None = None
    _request_seconds: float = 0.0  # what the last request took
    _next_token_at: float = -math.inf
    _renewal: asyncio.Lock = field(default_factory=asyncio.Lock)
    _has_warned: bool = False
    _cached: set[str] = field(default_factory=set)  # paths for which a cache answered

    async def page(
        self, path: str, offset: int, limit: int, on_attempt: OnAttempt, *, once: bool = False
    ) -> Attempt:
        """Return the answer to one page request; its content is a ParsedPage, within bounds.

        `on_attempt` gets every attempt that failed or was refused. `once`: a failure is not tried
        again. Raises ServiceError.
        """
        params = {"limit": limit, "offset": offset}
        ask = partial(self._ask_once, path, params, partial(parse_page, limit=limit), on_attempt)
        return await (ask() if once else self._with_retries(ask))

    async def read_object(self, path: str) -> dict[str, Any]:
        """Return an answer that is one JSON object, without credentials. Raises ServiceError."""
        read = partial(msgspec.json.decode, type=dict[str, Any])
        ask = partial(self._ask_once, path, {}, read, lambda _attempt: None)
        answer = await self._with_retries(ask)
        # Once more: an escape such as \u0073 can hide a credential until it is decoded.
        clean = self.redactor.clean_bytes(msgspec.json.encode(answer.content))
        return msgspec.json.decode(clean, type=dict[str, Any])

    def claims(self) -> dict[str, Any]:
        """Return the claims of the token in use, unverified; empty without a token."""
        return _claims(self._token.value) if self._token else {}

    async def _with_retries(self, ask: Callable[[], Awaitable[Attempt]]) -> Attempt:
        return await retry.ask_with_retries(ask, self.clock, self.connection.name)

    async def _ask_once(
        self,
        path: str,
        params: Mapping[str, int],
        read: Callable[[bytes], object],
        on_attempt: OnAttempt,
    ) -> Attempt:
        """Return an answer that `read` can read. Raises ServiceError, which `on_attempt` has."""
        attempt = await self._get(path, params)
        attempt.failure = attempt.failure or self._problem(attempt, path, read)
        if attempt.failure:
            on_attempt(attempt)
            raise attempt.failure
        return attempt

    async def _get(self, path: str, params: Mapping[str, int]) -> Attempt:
        """Send a request in a slot. If its token is refused, the next try has a new one."""
        request, attempt = self.http.build_request("GET", path, params=params), Attempt()
        async with AsyncExitStack() as held:
            await held.enter_async_context(self.limiter.hold(attempt))
            token = await self._sign(request)
            await self.send(request, attempt, held)
            attempt.body = self.redactor.clean_bytes(attempt.body)
        self._request_seconds = attempt.trip or 0.0
        if token and attempt.status == HTTPStatus.UNAUTHORIZED:
            if self._token is token:
                self._token = None
            error = retry.error_of_status(attempt, path, self.connection, self.redactor)
            is_valid = self.clock.monotonic() < token.expires_at
            kind = retry.TokenRefused if is_valid else errors.Unavailable
            attempt.failure = kind(str(error), error.remedy)
        return attempt

    def _problem(
        self, answer: Attempt, path: str, read: Callable[[bytes], object]
    ) -> errors.ServiceError | None:
        """Return why an answer cannot be used; None if it can."""
        if answer.status == HTTPStatus.NO_CONTENT and not answer.body:
            answer.content = empty_page("an empty list is status 204")
        elif answer.status != HTTPStatus.OK:
            return retry.error_of_status(answer, path, self.connection, self.redactor)
        elif problem := self._cache_problem(answer, path):
            return problem
        try:
            answer.content = answer.content or read(answer.body)
        except (errors.UnexpectedAnswer, *retry.UNREADABLE) as error:
            is_html = answer.body.lstrip().startswith(b"<")
            reason = "It is a page of HTML, perhaps of a proxy." if is_html else printable(error)
            return errors.Unavailable(
                f"The answer to {path} is not what was asked for. {reason}",
                "Check base_url of the connection and the network, then run `partner-sync sync`.",
            )
        for deviation in getattr(answer.content, "deviations", ()):
            self.note_deviation(path, deviation)
        return self._clock_problem(answer)

    def _cache_problem(self, answer: Attempt, path: str) -> errors.ServiceError | None:
        """Return an error for the first answer of a cache; later ones are used, and count as old.

        The request forbids that a cache answers. One that does it all the same will do it again.
        """
        age = cached_seconds(answer.headers)
        if age and (path not in self._cached or age > OLDEST_CACHED_SECONDS):
            self._cached.add(path)
            return errors.Unavailable(f"A cache answered {path}; its answer is {age} s old.")
        if age:
            self.note_deviation(path, "a cache answers, although the request forbids it")
        return None

    def _clock_problem(self, answer: Attempt) -> errors.ServiceError | None:
        """Compare the clocks by `Date`: warn once, or return an error if they differ by far.

        The service wrote `Date` between sending and receiving, cut off to whole seconds: 12:00:05
        may be any moment of that second.
        """
        theirs = read_date(answer.headers.get("date", ""), answer.sent_at)
        ahead = max(0.0, theirs - answer.received_at) + min(0.0, theirs + 1 - answer.sent_at)
        difference = (
            f"The clock of the service is {abs(ahead):,.0f} s "
            f"{'ahead of' if ahead > 0 else 'behind'} the clock of this machine, "
            f"which says {self.clock.utc_now():%Y-%m-%d %H:%M:%S} UTC."
        )
        if abs(ahead) > self.settings.max_clock_difference_hours * 3600:
            return errors.UnexpectedAnswer(
                difference,
                "Compare both with a third clock (`timedatectl` shows this machine's), correct "
                "the wrong one, then run `partner-sync check`.",
            )
        if abs(ahead) > CLOCK_WARN_SECONDS and not self._has_warned:
            logger.warning("Connection %s: %s", self.connection.name, difference)
            self._has_warned = True
        return None

    async def _sign(self, request: httpx.Request) -> _Token | None:
        """Sign a request that has its slot: a short token would expire while it waits for one."""
        if self.connection.surface == "merchant":
            request.headers["x-api-key"] = self._secret()
            return None
        before, token = self._token, await self._fresh_token()
        # A pause may have begun while a token was asked for, and be longer than the token lives.
        if token is not before:
            await self.limiter.wait_for_pause()
            before, token = token, await self._fresh_token()
        if token is not before:
            await self.limiter.wait_for_pause()
        request.headers["Authorization"] = f"Bearer {token.value}"
        return token

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
        await self.clock.sleep(self._next_token_at - self.clock.monotonic())
        await self.limiter.wait_for_pause()  # also one that a run before was asked for
        asked_at, url = self.clock.monotonic(), f"{self.connection.auth_url}/oauth/token"
        self._next_token_at = asked_at + SECONDS_BETWEEN_TOKENS
        body = {
            "client_id": self.connection.client_id,
            "client_secret": self._secret(),
            "audience": self.connection.audience,
            "grant_type": "client_credentials",
        }
        answer = Attempt()
        await self.send(self.http.build_request("POST", url, json=body), answer, AsyncExitStack())
        if answer.failure:
            raise answer.failure
        if answer.status in GIVEN:
            with suppress(*retry.UNREADABLE):
                given = msgspec.json.decode(answer.body, type=_TokenAnswer)
                self.redactor.add(given.access_token)
                life = self._lifetime(given)
                margin = max(WHOLE_SECOND, min(RENEW_SECONDS, RENEW_SHARE * life))
                expires_at = asked_at + life
                return _Token(given.access_token, expires_at - margin, expires_at)
        raise retry.KINDS.get(answer.status, errors.UnexpectedAnswer)(
            f"The identity provider {url} gave no token (status {answer.status})."
            f"{self.connection.doubt_about_secret()}",
            "Check auth_url, client_id, secret and audience of connection "
            f"`{self.connection.name}` in connections.toml, then run `partner-sync check`.",
        )

    def _lifetime(self, given: _TokenAnswer) -> float:
        """Return the seconds that a new token lives: as told, else by its claims, else a minute."""
        if seconds := _seconds(given.expires_in):
            return seconds
        claims = _claims(given.access_token)
        begins = claims.get("iat", self.clock.time())
        with suppress(TypeError):
            if 0 < (life := claims["exp"] - begins if "exp" in claims else 0) <= LONGEST_LIFE:
                return float(life)
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
