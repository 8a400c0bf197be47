"""What the rest of partner-sync sees of the service: one request, repeated until it is answered.

auth.py       token or API key
transport.py  rate limit, deadline, cap, redaction
retry.py      what an answer means, and which failures are repeated
"""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Self

import msgspec

from pipelines.archive.records import parse_page
from pipelines.core.clock import utc_now
from pipelines.core.errors import ServiceError, Unavailable, UnexpectedAnswer
from pipelines.core.text import printable
from pipelines.http import retry
from pipelines.http.auth import SigningTransport
from pipelines.http.retry import Attempt
from pipelines.rate_limit.headers import read_date

__all__ = ["Attempt", "ServiceClient"]

CLOCK_WARN_SECONDS = 300.0

OnAttempt = Callable[[Attempt], object]
logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class ServiceClient(SigningTransport):
    """Asks one service on behalf of one connection. Use as an async context manager.

    The constructor raises ConfigurationError for a ca_file or proxy that cannot be used.
    """

    _has_warned: bool = False

    async def __aenter__(self) -> Self:
        """Open the client."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close connections."""
        await self.http.aclose()

    async def page(self, path: str, offset: int, limit: int, on_attempt: OnAttempt) -> Attempt:
        """Return the answer to one page request; its content is a ParsedPage, within bounds.

        `on_attempt` gets every attempt that failed or was refused. Raises ServiceError.
        """
        params = {"limit": limit, "offset": offset}
        return await self._ask(path, params, partial(parse_page, limit=limit), on_attempt)

    async def read_object(self, path: str) -> dict[str, Any]:
        """Return an answer that is one JSON object, without credentials. Raises ServiceError."""
        read = partial(msgspec.json.decode, type=dict[str, Any])
        answer = await self._ask(path, {}, read, lambda _attempt: None)
        # Once more: an escape such as \u0073 can hide a credential until it is decoded.
        clean = self.redactor.clean_bytes(msgspec.json.encode(answer.content))
        return msgspec.json.decode(clean, type=dict[str, Any])

    async def _ask(
        self,
        path: str,
        params: Mapping[str, int],
        read: Callable[[bytes], object],
        on_attempt: OnAttempt,
    ) -> Attempt:
        """Return an answer of status 200 that `read` can read."""

        async def ask_once() -> Attempt:
            attempt = await self.get(path, params)
            attempt.failure = attempt.failure or self._problem(attempt, path, read)
            if attempt.failure:
                on_attempt(attempt)
                raise attempt.failure
            return attempt

        return await retry.ask_with_retries(ask_once, self.clock, self.connection.name)

    def _problem(
        self, answer: Attempt, path: str, read: Callable[[bytes], object]
    ) -> ServiceError | None:
        """Return why an answer cannot be used; None if it can."""
        if answer.status != HTTPStatus.OK:
            return retry.error_of_status(answer, path, self.connection, self.redactor)
        if re.fullmatch(r"0*[1-9][0-9]*", age := answer.headers.get("age", "").strip()):
            return Unavailable(f"A cache answered {path}; its answer is {age[:10]} s old.")
        try:
            answer.content = read(answer.body)
        except (UnexpectedAnswer, *retry.UNREADABLE) as error:
            is_html = answer.body.lstrip().startswith(b"<")
            reason = "It is a page of HTML, perhaps of a proxy." if is_html else printable(error)
            return Unavailable(
                f"The answer to {path} is not what was asked for. {reason}",
                "Check base_url of the connection and the network, then run `partner-sync sync`.",
            )
        return self._clock_problem(answer)

    def _clock_problem(self, answer: Attempt) -> ServiceError | None:
        """Compare the clocks by `Date`: warn once, or return an error if they differ by far.

        The service wrote it between sending and receiving, cut off to whole seconds.
        """
        theirs = read_date(answer.headers.get("date", ""), answer.sent_at)
        ahead = max(0.0, theirs - answer.received_at) + min(0.0, theirs + 1 - answer.sent_at)
        difference = (
            f"The clock of the service is {abs(ahead):,.0f} s "
            f"{'ahead of' if ahead > 0 else 'behind'} the clock of this machine, "
            f"which says {utc_now(self.clock):%Y-%m-%d %H:%M:%S} UTC."
        )
        if abs(ahead) > self.settings.max_clock_difference_hours * 3600:
            return UnexpectedAnswer(
                difference,
                "Compare both with a third clock (`timedatectl` shows this machine's), correct "
                "the wrong one, then run `partner-sync check`.",
            )
        if abs(ahead) > CLOCK_WARN_SECONDS and not self._has_warned:
            logger.warning("Connection %s: %s", self.connection.name, difference)
            self._has_warned = True
        return None
