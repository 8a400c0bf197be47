"""What the rest of partner-sync sees of the service: one request, repeated until it is answered.

Here: pages and objects, and what makes an answer unusable. Not here: signatures (credentials), the
network (transport), what an answer means and what is repeated (retry).
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

import msgspec

from pipelines.archive.envelope import empty_page
from pipelines.archive.lines import cached_seconds
from pipelines.archive.records import parse_page
from pipelines.core import errors
from pipelines.core.text import REDACTED, printable
from pipelines.http import retry
from pipelines.http.credentials import SigningTransport, Token
from pipelines.http.page_size import refuses_page_size, size_refused, stream_at
from pipelines.http.retry import Attempt
from pipelines.rate_limit.headers import read_date
from pipelines.rate_limit.known_pause import MustWait

__all__ = ["Attempt", "ServiceClient"]

CLOCK_WARN_SECONDS = 300.0
OLDEST_CACHED_SECONDS = 300  # of a page that a cache kept
# The interface description comes at once and is small, or a sync goes on without it.
DOCUMENT_SECONDS = 10.0
MAX_DOCUMENT = 8 * 2**20  # bytes

OnAttempt = Callable[[Attempt], object]
logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class ServiceClient(SigningTransport):
    """Asks one service on behalf of one connection, whose requests share a token.

    Use it within `async with client.http`. The secret is not kept.
    """

    _halved: dict[str, int] = field(default_factory=dict)  # page sizes, by path
    _has_warned: bool = False
    _cached: set[str] = field(default_factory=set)  # paths for which a cache answered
    _echoing: set[str] = field(default_factory=set)  # whose answers hold a credential

    async def page(
        self, path: str, offset: int, limit: int, on_attempt: OnAttempt, *, once: bool = False
    ) -> Attempt:
        """Return the answer to one page request; its content is a ParsedPage, within bounds.

        Where the service refuses pages of this size, half of it is asked for from then on, once.
        `on_attempt` gets every attempt that failed or was refused. `once`: a failure is not tried
        again. Raises ServiceError.
        """
        size = min(limit, self._halved.get(path, limit))
        ask = partial(self._page_of_size, path, offset, on_attempt=on_attempt, once=once)
        try:
            return await ask(size)
        except errors.PageSizeRefused as error:
            if size < limit or size == 1:
                raise
            # Chains of pages go by the rows received, so pages of two sizes prove the same.
            self._halved[path] = size // 2
            logger.info("%s: %s Asking for %d records a page.", path, error, size // 2)
        return await ask(size // 2)

    async def _page_of_size(
        self, path: str, offset: int, size: int, on_attempt: OnAttempt, *, once: bool
    ) -> Attempt:
        is_refused = False

        def note(attempt: Attempt) -> None:
            nonlocal is_refused
            attempt.limit = size
            is_first = offset == 0 and path not in self._halved
            is_refused = refuses_page_size(attempt, is_first=is_first)
            on_attempt(attempt)

        params = {"limit": size, "offset": offset}
        ask = partial(self._ask_once, path, params, partial(parse_page, limit=size), note)
        try:
            answer = await (ask() if once else self._with_retries(ask))
        except errors.UnexpectedAnswer as error:
            if is_refused:
                raise size_refused(self.connection, self.settings, path, size, error) from None
            raise
        answer.limit = size
        return answer

    async def read_object(self, path: str) -> dict[str, Any]:
        """Return an answer that is one JSON object, without credentials. Raises ServiceError."""
        read = partial(msgspec.json.decode, type=dict[str, Any])
        ask = partial(self._ask_once, path, {}, read, lambda _attempt: None)
        answer = await self._with_retries(ask)
        # Once more: an escape such as \u0073 can hide a credential until it is decoded.
        clean = self.redactor.clean_bytes(msgspec.json.encode(answer.content))
        return msgspec.json.decode(clean, type=dict[str, Any])

    async def read_document(self, path: str) -> dict[str, Any]:
        """Return a JSON object below /docs/, which no limit counts. Asks once; raises ServiceError.

        It is small and comes at once, or it is of no use.
        """
        answer = await self.send_without_slot("GET", path, seconds=DOCUMENT_SECONDS)
        if answer.failure:
            raise answer.failure
        if answer.status != HTTPStatus.OK or len(answer.body) > MAX_DOCUMENT:
            raise self._error(answer, path)
        body = self.redactor.clean_bytes(answer.body)
        try:
            document = msgspec.json.decode(body, type=dict[str, Any])
            clean = self.redactor.clean_bytes(msgspec.json.encode(document))
            return msgspec.json.decode(clean, type=dict[str, Any])
        except retry.UNREADABLE as error:
            raise errors.UnexpectedAnswer(f"{path} is no JSON object: {printable(error)}") from None

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
        # What was stopped before it left was not asked: it queues again, and counts as no try.
        attempt, token = await self._send_signed(path, params)
        while isinstance(attempt.failure, MustWait):
            attempt, token = await self._send_signed(path, params)
        clean = self.redactor.clean_bytes(attempt.body)
        if clean is not attempt.body:
            self._note_credential(path)
        attempt.body = clean
        self._request_seconds = attempt.trip or 0.0
        if token and attempt.status == HTTPStatus.UNAUTHORIZED:
            if self._token is token:
                self._token = None
            error = self._error(attempt, path)
            if self.clock.monotonic() < token.expires_at:
                attempt.failure = retry.TokenRefused(str(error), error.remedy)
            else:  # it expired on its way
                attempt.failure = errors.Unavailable(str(error), error.remedy)
        return attempt

    def _note_credential(self, path: str) -> None:
        """Warn once that what is stored of answers is not all that was sent."""
        if path in self._echoing:
            return
        self._echoing.add(path)
        logger.warning(
            "Connection %s: an answer to %s holds a credential of the connection. It is stored as "
            "%s, also where a record has this text by chance: then choose a longer secret.",
            self.connection.name,
            path,
            REDACTED,
        )

    async def _send_signed(
        self, path: str, params: Mapping[str, int]
    ) -> tuple[Attempt, Token | None]:
        request = self.http.build_request("GET", path, params=params)
        attempt = Attempt()
        async with AsyncExitStack() as slot:
            await slot.enter_async_context(self.limiter.hold(attempt))
            token = await self._sign(request)
            await self.send(request, attempt, slot)
        return attempt, token

    def _problem(
        self, answer: Attempt, path: str, read: Callable[[bytes], object]
    ) -> errors.ServiceError | None:
        """Return why an answer cannot be used; None if it can."""
        if answer.status == HTTPStatus.NO_CONTENT and not answer.body:
            answer.content = empty_page("an empty list is status 204")
        elif answer.status != HTTPStatus.OK:
            return self._error(answer, path)
        else:
            problem = self._cache_problem(answer, path)
            if problem:
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

    def _error(self, answer: Attempt, path: str) -> errors.ServiceError:
        stream = stream_at(self.settings, path)
        return retry.error_of_status(answer, path, self.connection, self.redactor, stream)

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
        # One of the two is 0: `theirs` is after the request, before it, or neither.
        ahead = max(0.0, theirs - answer.received_at) + min(0.0, theirs + 1 - answer.sent_at)
        direction = "ahead of" if ahead > 0 else "behind"
        difference = (
            f"The clock of the service is {abs(ahead):,.0f} s {direction} the clock of this "
            f"machine, which says {self.clock.utc_now():%Y-%m-%d %H:%M:%S} UTC."
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
