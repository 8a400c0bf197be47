"""The transport: every request leaves through it, with a slot, a deadline and caps.

An httpx transport, so that nothing passes it by: retries and repeated signatures included. Answers
leave it whole, decompressed, without credentials, and with headers of an allowlist only.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol

import httpx

from pipelines.core.clock import Clock
from pipelines.core.errors import ConfigurationError, PartnerSyncError, Unavailable
from pipelines.core.text import Redactor, printable
from pipelines.http.body import MAX_RECEIVED, MAX_SMALL, decompress, receive_body
from pipelines.http.problems import wait_seconds
from pipelines.http.retry import pause_seconds
from pipelines.rate_limit.limiter import Slot

SIGNATURES = ("authorization", "x-api-key")
KEPT_HEADERS = (
    *("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"),
    *("date", "age", "content-type"),
)
SENT, ANSWERED = "http11.send_request_headers.complete", "http11.receive_response_headers.complete"


class Limiter(Protocol):
    """What the client needs of a rate limiter; see RateLimiter."""

    def slot(self) -> AbstractAsyncContextManager[Slot]:
        """Wait for the place of one request and hold it."""

    def block(self, seconds: float) -> None:
        """Let nobody send for so long."""

    def spare(self) -> bool:
        """Return whether part of the limit is unused."""


@dataclass(frozen=True)
class Attempt:
    """One request on the wire: what a scan file records of it, whether it was answered or not.

    `sent_at` and `received_at` are Unix seconds. `headers` are those of an allowlist. `error` says
    why there is no usable answer. Nothing in it holds a credential.
    """

    status: int | None
    sent_at: float
    received_at: float
    request_id: str | None
    headers: dict[str, str]
    body: bytes | None = field(repr=False)
    error: str | None = None


@dataclass
class _Trip:
    """One request on its way. `deadline` is of the event loop's clock."""

    request: httpx.Request
    slot: Slot
    clock: Clock
    sent_at: float
    deadline: float
    headers: dict[str, str] = field(default_factory=dict)
    request_id: str | None = None

    @property
    def path(self) -> str:
        return self.request.url.path

    @property
    def place(self) -> str:
        return self.request.url.netloc.decode()

    async def trace(self, event: str, _info: Any) -> None:
        """Note when headers were written and received: httpx's `trace` extension."""
        if event == SENT:
            self.slot.sent_at = self.clock.time()
        elif event == ANSWERED:
            self.slot.answered_at = self.clock.time()

    def record(self, body: bytes | None, error: str | None = None) -> None:
        """Hand an attempt to whoever sent the request; token requests have nobody."""
        attempt = Attempt(
            status=self.slot.status,
            sent_at=self.slot.sent_at or self.sent_at,
            received_at=self.clock.time(),
            request_id=self.request_id,
            headers=self.headers,
            body=body,
            error=error,
        )
        self.request.extensions.get("attempts", []).append(attempt)

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record a failure of the block as an attempt before it is raised."""
        try:
            yield
        except PartnerSyncError as error:
            self.record(None, str(error))
            raise
        except asyncio.CancelledError:
            self.record(None, "Cancelled.")
            raise


class ServiceTransport(httpx.AsyncBaseTransport):
    """A network on which signed requests keep the rate limit."""

    def __init__(
        self,
        network: httpx.AsyncBaseTransport,
        limiter: Limiter,
        redactor: Redactor,
        clock: Clock,
        timeout_seconds: float,
    ) -> None:
        self._network = network
        self._limiter = limiter
        self._redactor = redactor
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._refused_in_a_row = 0

    async def aclose(self) -> None:
        """Close the connections."""
        await self._network.aclose()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and receive the whole answer. Raises Unavailable, ConfigurationError.

        A request without credentials does not count against the actor's limit.
        """
        if not any(name in request.headers for name in SIGNATURES):
            trip = self._trip(request, Slot(0))
            return await self._receive(trip, await self._open(trip), MAX_SMALL)
        async with self._limiter.slot() as slot:
            trip = self._trip(request, slot)
            with trip.recorded():
                response = await self._open(trip)
                if _asks_to_wait(response):
                    return await self._receive_pause(trip, response)
        with trip.recorded():
            return await self._receive(trip, response, MAX_RECEIVED)

    def _trip(self, request: httpx.Request, slot: Slot) -> _Trip:
        deadline = asyncio.get_running_loop().time() + self._timeout_seconds
        trip = _Trip(request, slot, self._clock, self._clock.time(), deadline)
        request.extensions = {**request.extensions, "trace": trip.trace}
        return trip

    async def _open(self, trip: _Trip) -> httpx.Response:
        """Send a request and return the answer when its headers have arrived."""
        try:
            async with self._in_time(trip):
                response = await self._network.handle_async_request(trip.request)
        except httpx.TransportError as error:
            raise self._explained(error, trip) from None
        clean, headers, slot = self._redactor.clean, response.headers, trip.slot
        trip.headers = {name: clean(headers[name]) for name in KEPT_HEADERS if name in headers}
        trip.request_id = printable(clean(headers.get("x-request-id", ""))) or None
        slot.sent_at = slot.sent_at or trip.sent_at  # networks in tests do not trace
        slot.answered_at = slot.answered_at or self._clock.time()
        slot.status, slot.headers = int(response.status_code), trip.headers
        if response.status_code != HTTPStatus.TOO_MANY_REQUESTS:
            self._refused_in_a_row = 0
        return response

    async def _receive(self, trip: _Trip, response: httpx.Response, cap: int) -> httpx.Response:
        """Return the whole answer, clean, and record it."""
        async with self._in_time(trip):
            body = await receive_body(response, trip.path, cap)
        body = decompress(response, trip.path, body)
        if cap != MAX_SMALL:  # the body of a token answer is the credential itself
            body = self._redactor.clean_bytes(body)
        trip.record(body)
        return httpx.Response(
            response.status_code,
            headers=[(name.encode(), value.encode()) for name, value in trip.headers.items()],
            content=body,
            extensions={"location": self._redactor.clean(response.headers.get("location", ""))},
        )

    async def _receive_pause(self, trip: _Trip, response: httpx.Response) -> httpx.Response:
        """Return the whole answer; let nobody send before the time that header or body name."""
        body = b""
        try:
            answer = await self._receive(trip, response, MAX_RECEIVED)
            body = answer.content
        finally:
            asked = wait_seconds(response.headers, body, self._clock.time())
            if response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
                self._refused_in_a_row += 1
            self._limiter.block(pause_seconds(asked, max(1, self._refused_in_a_row)))
        return answer

    @asynccontextmanager
    async def _in_time(self, trip: _Trip) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout_at(trip.deadline):
                yield
        except TimeoutError:
            seconds = f"{self._timeout_seconds:g} s"
            raise Unavailable(
                f"{trip.place} did not answer {trip.path} whole within {seconds}."
            ) from None

    def _explained(self, error: httpx.TransportError, trip: _Trip) -> PartnerSyncError:
        """Return what a failure of the network means, without what it may quote of us."""
        detail = printable(self._redactor.clean(str(error)), 100)
        if _is_certificate_error(error):
            return ConfigurationError(
                f"The certificate of {trip.place} is not trusted: {detail}. Nothing was sent.",
                "Set ca_file of the connection to the certificate authority of the service.",
            )
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
            return Unavailable(f"No connection to {trip.place}.")
        reason = f": {detail}" if isinstance(error, httpx.RemoteProtocolError) else ""
        return Unavailable(f"The connection to {trip.place} broke off ({trip.path}){reason}.")


def _asks_to_wait(response: httpx.Response) -> bool:
    if response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        return True
    return response.is_server_error and "retry-after" in response.headers


def _is_certificate_error(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
