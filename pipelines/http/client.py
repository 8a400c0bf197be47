"""One request, repeated until it is answered: what the rest of partner-sync sees of the service.

page, whoami            what is asked for
transient_policy        failures that may pass
rate_limited_policy     answers 429
auth (httpx.Auth)       token or API key
transport               rate limit, deadline, caps, redaction
"""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec

from pipelines.config.connections import Connection
from pipelines.core.clock import Clock, utc_now
from pipelines.core.errors import PartnerSyncError, Postponed, Unavailable, UnexpectedAnswer
from pipelines.core.text import Redactor
from pipelines.http.auth import ApiKeyAuth, ClientCredentials
from pipelines.http.clock_difference import WARN_SECONDS, ClockDifference, clock_difference
from pipelines.http.network import open_http, open_network
from pipelines.http.page_check import check_object, check_page
from pipelines.http.problems import UNCHANGED, failure, read_problem, redirected
from pipelines.http.retry import (
    LONGEST_WAIT_SECONDS,
    RetryQuota,
    postponed,
    rate_limited_policy,
    transient_policy,
)
from pipelines.http.transport import Attempt, Limiter, ServiceTransport

__all__ = ["Attempt", "ClientOptions", "Limiter", "ServiceClient"]

# The proof by counting needs each page as it is now, so no cache may answer.
FRESH = {"Cache-Control": "no-cache"}
OnAttempt = Callable[[Attempt], None]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ClientOptions:
    """Limits of a client. `transport` replaces the network, for tests."""

    timeout_seconds: float = 60.0  # of a whole request, its body included
    use_proxy: bool = False
    max_clock_difference_seconds: float = 86_400.0
    transport: httpx.AsyncBaseTransport | None = None


@dataclass(frozen=True)
class _Question:
    """A path with its query, and the check of a body, which raises Unavailable."""

    path: str
    check: Callable[[str, bytes], None]
    params: dict[str, int] | None = None


class ServiceClient:
    """Asks one service on behalf of one connection. Use as an async context manager.

    The constructor raises ConfigurationError for a ca_file or proxy that cannot be used.
    """

    def __init__(
        self,
        connection: Connection,
        options: ClientOptions,
        limiter: Limiter,
        redactor: Redactor,
        clock: Clock,
    ) -> None:
        self._connection = connection
        self._options = options
        self._limiter = limiter
        self._redactor = redactor
        self._clock = clock
        self._quota = RetryQuota()
        self._transient = transient_policy(clock, self._quota)
        self._rate_limited = rate_limited_policy()
        self._auth = (
            ApiKeyAuth(connection, redactor)
            if connection.surface == "merchant"
            else ClientCredentials(connection, redactor, clock)
        )
        self._http = open_http(connection, self._auth, self._transport, use_proxy=options.use_proxy)
        self.clock_difference: ClockDifference | None = None  # as the last answer shows it

    async def __aenter__(self) -> Self:
        """Open the client."""
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close connections."""
        await self._http.__aexit__(kind, error, trace)

    def _transport(self, proxy: str | None) -> ServiceTransport:
        options = self._options
        network = options.transport or open_network(self._connection, proxy)
        return ServiceTransport(
            network, self._limiter, self._redactor, self._clock, options.timeout_seconds
        )

    async def page(self, path: str, offset: int, limit: int, on_attempt: OnAttempt) -> Attempt:
        """Return the answer to one page request: status 200, a page of a list, within bounds.

        `on_attempt` gets every attempt that failed or was refused. Raises ServiceError.
        """
        params = {"limit": limit, "offset": offset}
        return await self._ask(_Question(path, partial(check_page, limit), params), on_attempt)

    async def whoami(self) -> dict[str, Any]:
        """Return what the service says of the caller (partner surface). Raises ServiceError."""
        answer = await self._ask(_Question("/v2/whoami", check_object), lambda _attempt: None)
        # Once more: an escape such as \u0073 can hide a credential until it is decoded.
        decoded = msgspec.json.decode(answer.body or b"")
        clean = self._redactor.clean_bytes(msgspec.json.encode(decoded))
        return msgspec.json.decode(clean, type=dict[str, Any])

    def claims(self) -> dict[str, Any]:
        """Return what the token in use says of itself, unverified; empty before the first."""
        return self._auth.claims()

    def may_prefetch(self) -> bool:
        """Return whether latency leaves part of the rate limit unused."""
        return self._limiter.spare()

    async def _ask(self, question: _Question, on_attempt: OnAttempt) -> Attempt:
        within_limit = self._rate_limited.copy()
        answer: Attempt = await self._transient.copy()(
            within_limit, self._ask_once, question, on_attempt
        )
        self._quota.earn()
        return answer

    async def _ask_once(self, question: _Question, on_attempt: OnAttempt) -> Attempt:
        """Send a request once; a refused token may make that two. Raises ServiceError."""
        attempts: list[Attempt] = []
        error = ""
        request = self._http.build_request(
            "GET",
            question.path,
            params=question.params,
            headers=FRESH,
            extensions={"attempts": attempts},
        )
        try:
            response = await self._http.send(request)
            self._check_answer(response, attempts[-1])
            question.check(request.url.path, response.content)
            return attempts.pop()
        except Postponed as failed:  # of the limiter, too, which knows no connection
            error = str(failed)
            raise postponed(request.url.path, failed.until, self._connection.name) from None
        except PartnerSyncError as failed:
            error = str(failed)
            raise
        finally:
            for number, attempt in enumerate(attempts, 1):
                last = error if number == len(attempts) else ""
                said = attempt.error or last or f"Status {attempt.status}."
                on_attempt(replace(attempt, error=said))

    def _check_answer(self, response: httpx.Response, attempt: Attempt) -> None:
        """Raise the error that an answer means, if it does not mean success."""
        path = response.request.url.path
        if response.extensions["location"]:
            raise redirected(path, response.extensions["location"], self._connection)
        if response.status_code != HTTPStatus.OK:
            problem = read_problem(response, self._redactor, self._clock.time())
            asked = problem.wait_seconds or 0.0
            may_wait = response.status_code == HTTPStatus.TOO_MANY_REQUESTS
            if asked > LONGEST_WAIT_SECONDS and (may_wait or response.is_server_error):
                until = utc_now(self._clock) + timedelta(seconds=asked)
                raise postponed(path, until, self._connection.name)
            raise failure(problem, self._connection)
        age = attempt.headers.get("age", "").strip()
        if re.fullmatch(r"[0-9]*[1-9][0-9]*", age):
            raise Unavailable(f"A cache answered {path}; its answer is {age[:10]} s old.")
        self._check_clocks(attempt)

    def _check_clocks(self, attempt: Attempt) -> None:
        date = attempt.headers.get("date")
        found = clock_difference(date, attempt.sent_at, attempt.received_at)
        previous, self.clock_difference = self.clock_difference, found
        if found and found.exceeds(self._options.max_clock_difference_seconds):
            raise UnexpectedAnswer(
                f"{found.sentence()} {UNCHANGED}",
                "Compare both with a third clock (`timedatectl` shows this machine's), set the "
                "wrong one, then run `partner-sync check`.",
            )
        is_known = previous is not None and previous.exceeds(WARN_SECONDS)
        if found and found.exceeds(WARN_SECONDS) and not is_known:
            logger.warning("Connection %s: %s", self._connection.name, found.sentence())
