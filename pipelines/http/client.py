"""What the rest of partner-sync sees of the service: one request, repeated until it is answered.

retry.py      which failures are repeated, and when
auth.py       token or API key
transport.py  rate limit, deadline, cap, redaction
problems.py   what a failed answer means
"""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from typing import Any, Self

import msgspec

from pipelines.archive.records import parse_page
from pipelines.config.connections import Connection
from pipelines.core.clock import Clock, utc_now
from pipelines.core.errors import ServiceError, Unavailable, UnexpectedAnswer
from pipelines.core.text import Redactor, printable
from pipelines.http.auth import ApiKey, ClientCredentials
from pipelines.http.problems import failure
from pipelines.http.retry import UNREADABLE, ask_with_retries, service_error
from pipelines.http.transport import Attempt, ClientOptions, OnAttempt, Transport
from pipelines.rate_limit.limiter import RateLimiter

__all__ = ["Attempt", "ClientOptions", "ServiceClient"]

CLOCK_WARN_SECONDS = 300.0

logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class ServiceClient:
    """Asks one service on behalf of one connection. Use as an async context manager.

    The constructor raises ConfigurationError for a ca_file or proxy that cannot be used.
    """

    connection: Connection
    options: ClientOptions
    limiter: RateLimiter
    redactor: Redactor
    clock: Clock
    # Seconds that the service's clock is ahead of ours at least, as the last answer shows it.
    clock_difference: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        connection, redactor, clock = self.connection, self.redactor, self.clock
        self._transport = Transport(connection, self.options, self.limiter, redactor, clock)
        self._auth: ApiKey | ClientCredentials = ApiKey(connection, redactor)
        if connection.surface == "partner":
            self._auth = ClientCredentials(connection, self._transport, redactor, clock)

    async def __aenter__(self) -> Self:
        """Open the client."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close connections."""
        await self._transport.http.aclose()

    async def page(self, path: str, offset: int, limit: int, on_attempt: OnAttempt) -> Attempt:
        """Return the answer to one page request: status 200, a page of a list, within bounds.

        `on_attempt` gets every attempt that failed or was refused. Raises ServiceError.
        """
        params = {"limit": limit, "offset": offset}
        return await self._ask(path, params, partial(parse_page, limit=limit), on_attempt)

    async def whoami(self) -> dict[str, Any]:
        """Return what the service says of the caller (partner surface). Raises ServiceError."""
        read = partial(msgspec.json.decode, type=dict[str, Any])
        answer = await self._ask("/v2/whoami", {}, read, lambda _attempt: None)
        # Once more: an escape such as \u0073 can hide a credential until it is decoded.
        clean = self.redactor.clean_bytes(msgspec.json.encode(read(answer.body or b"")))
        return msgspec.json.decode(clean, type=dict[str, Any])

    def claims(self) -> dict[str, Any]:
        """Return what the token in use says of itself, unverified; empty before the first."""
        return self._auth.claims()

    def may_prefetch(self) -> bool:
        """Return whether latency leaves part of the rate limit unused."""
        return self.limiter.spare()

    async def _ask(
        self,
        path: str,
        params: Mapping[str, int],
        read: Callable[[bytes], object],
        on_attempt: OnAttempt,
    ) -> Attempt:
        """Return an answer of status 200 that `read` can read."""

        async def send(signature: Mapping[str, str]) -> Attempt:
            build = self._transport.http.build_request
            request = build("GET", path, params=params, headers=signature)
            return await self._transport.get(request, on_attempt)

        async def ask_once() -> Attempt:
            answer = await self._auth.send(send, on_attempt)
            try:
                self._check_head(answer, path)
                _check_body(answer, path, read)
            except ServiceError as error:
                on_attempt(replace(answer, error=str(error)))
                raise
            return answer

        return await ask_with_retries(ask_once, self.clock)

    def _check_head(self, answer: Attempt, path: str) -> None:
        if answer.status != HTTPStatus.OK:
            raise failure(answer, path, self.connection, self.redactor)
        age = answer.headers.get("age", "").strip()
        if re.fullmatch(r"[0-9]*[1-9][0-9]*", age):
            raise Unavailable(f"A cache answered {path}; its answer is {age[:10]} s old.")
        previous, ahead = self.clock_difference or 0.0, _seconds_ahead(answer)
        self.clock_difference = ahead
        if ahead is None or abs(ahead) <= CLOCK_WARN_SECONDS:
            return
        side = "ahead of" if ahead > 0 else "behind"
        difference = (
            f"The clock of the service is {abs(ahead):,.0f} s {side} the clock of this machine, "
            f"which says {utc_now(self.clock):%Y-%m-%d %H:%M:%S} UTC."
        )
        if abs(ahead) > self.options.max_clock_difference_seconds:
            raise service_error(
                UnexpectedAnswer,
                difference,
                "Compare both with a third clock (`timedatectl` shows this machine's), set the "
                "wrong one, then run `partner-sync check`.",
            )
        if abs(previous) <= CLOCK_WARN_SECONDS:
            logger.warning("Connection %s: %s", self.connection.name, difference)


def _check_body(answer: Attempt, path: str, read: Callable[[bytes], object]) -> None:
    body = answer.body or b""
    try:
        read(body)
    except (UnexpectedAnswer, *UNREADABLE) as error:
        is_html = body.lstrip().startswith(b"<")
        reason = "It is a page of HTML, perhaps of a proxy." if is_html else printable(error)
        raise Unavailable(
            f"The answer to {path} is not what was asked for. {reason}",
            "Check base_url of the connection and the network, then run `partner-sync sync`.",
        ) from None


def _seconds_ahead(answer: Attempt) -> float | None:
    """Return how much the service's clock is ahead at least, by its Date; None if unreadable.

    The service wrote it between sending and receiving, cut off to whole seconds.
    """
    try:
        date = parsedate_to_datetime(answer.headers.get("date", ""))
        theirs = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, theirs - answer.received_at) + min(0.0, theirs + 1 - answer.sent_at)
