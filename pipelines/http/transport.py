"""The transport: every request leaves through it, with a slot, a deadline and a cap.

An answer leaves it as an Attempt: whole, decompressed, without credentials, and with headers of an
allowlist only.
"""

import asyncio
import logging
import re
import ssl
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field, replace
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from pipelines.config.connections import Connection
from pipelines.core.clock import Clock
from pipelines.core.errors import ConfigurationError, PartnerSyncError, Postponed, Unavailable
from pipelines.core.text import Redactor, printable
from pipelines.http.retry import TRANSIENT, postponed, wait_seconds
from pipelines.rate_limit.limiter import RateLimiter, Slot

MAX_BODY = 64 * 2**20  # decompressed: 500 records of 128 KiB
CONNECT_SECONDS = 10.0  # for all else, the deadline of the whole request counts
# The proof by counting needs each page as it is now, so no cache may answer.
HEADERS = {"Accept-Encoding": "gzip", "Cache-Control": "no-cache"}
ENCODINGS = {"", "identity", "gzip"}
KEPT_HEADERS = (
    *("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"),
    *("date", "age", "content-type"),
)
MAY_PAUSE = {429, *TRANSIENT}
SENT = "http11.send_request_headers.complete"  # an event of httpx's `trace` extension
QUOTED = re.compile(r"\W*(bytearray\(|b['\"]).*", re.DOTALL)  # what h11 quotes of an answer
EXPECTED = (PartnerSyncError, httpx.RequestError, TimeoutError, asyncio.CancelledError)
UNREACHABLE = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
FAILURES: dict[type[Exception] | tuple[type[Exception], ...], str] = {
    TimeoutError: "{place} did not answer {path} whole within {seconds:g} s.",
    UNREACHABLE: "No connection to {place}.",
    httpx.DecodingError: "The answer to {path} cannot be decompressed.",
    httpx.RequestError: "The connection to {place} broke off ({path}): {detail}.",
}


@dataclass(frozen=True)
class ClientOptions:
    """Limits of a client. `transport` replaces the network, for tests."""

    timeout_seconds: float = 60.0  # of a whole request, its body included
    use_proxy: bool = False
    max_clock_difference_seconds: float = 86_400.0
    transport: httpx.AsyncBaseTransport | None = None


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


OnAttempt = Callable[[Attempt], None]


@dataclass(eq=False, repr=False)
class Transport:
    """Sends requests of one connection. Redirects are never followed, cookies never kept."""

    connection: Connection
    options: ClientOptions
    limiter: RateLimiter
    redactor: Redactor
    clock: Clock

    def __post_init__(self) -> None:
        self.http = _open_http(self.connection, self.options)

    async def get(self, request: httpx.Request, on_failure: OnAttempt) -> Attempt:
        """Send a signed request in a slot of the rate limit; return the answer of any status.

        `on_failure` gets an attempt without a whole answer. Raises Unavailable, Postponed,
        ConfigurationError.
        """
        async with AsyncExitStack() as held:
            try:
                slot = await held.enter_async_context(self.limiter.slot())
            except Postponed as error:
                raise postponed(request.url.path, error.until, self.connection.name) from None
            attempt, failure = await self._exchange(request, slot, held)
            if attempt.body:
                attempt = replace(attempt, body=self.redactor.clean_bytes(attempt.body))
            asked = wait_seconds(attempt.headers, attempt.body, self.clock.time())
            if attempt.status in MAY_PAUSE and asked:
                self.limiter.block(asked)
        if failure:
            on_failure(attempt)
            raise failure
        return attempt

    async def post_for_token(self, url: str, body: Mapping[str, str | None]) -> Attempt:
        """Send a request outside the rate limit; the body of its answer may be a credential."""
        request = self.http.build_request("POST", url, json=body)
        attempt, failure = await self._exchange(request, Slot(0), AsyncExitStack())
        if failure:
            raise failure
        return attempt

    async def _exchange(
        self, request: httpx.Request, slot: Slot, held: AsyncExitStack
    ) -> tuple[Attempt, BaseException | None]:
        """Send a request and receive the answer; return that, and the error if it is not whole.

        `held`, which holds the slot, is closed with the headers of the answer. Where the answer may
        ask for a pause it stays open, so that nobody sends before the pause is known.
        """
        now = self.clock.time()
        attempt, body, failure = Attempt(None, now, now, None, {}, None), None, None
        try:
            async with (
                asyncio.timeout(self.options.timeout_seconds),
                aclosing(await self._send(request, slot)) as response,
            ):
                attempt = self._read_head(response, slot, now)
                if attempt.status not in MAY_PAUSE:
                    await held.aclose()
                body = await _receive(response)
        except EXPECTED as error:
            failure = self._explained(error, request)
        reason = None if failure is None else str(failure) or "Cancelled."
        now = self.clock.time()
        return replace(attempt, received_at=now, body=body, error=reason), failure

    async def _send(self, request: httpx.Request, slot: Slot) -> httpx.Response:
        async def note_sent(event: str, _info: object) -> None:
            if event == SENT:
                slot.sent_at = self.clock.time()

        request.extensions["trace"] = note_sent
        return await self.http.send(request, stream=True)

    def _read_head(self, response: httpx.Response, slot: Slot, begun_at: float) -> Attempt:
        """Return what is known when the headers of an answer have arrived; note it in the slot."""
        clean, headers = self.redactor.clean, response.headers
        kept = {name: clean(headers[name]) for name in KEPT_HEADERS if name in headers}
        if response.extensions["location"]:
            kept["location"] = _without_secrets(clean(response.extensions["location"]))
        slot.sent_at = slot.sent_at or begun_at  # networks in tests do not trace
        slot.answered_at = self.clock.time()
        slot.status, slot.headers = int(response.status_code), kept
        request_id = printable(clean(headers.get("x-request-id", ""))) or None
        return Attempt(slot.status, slot.sent_at, slot.answered_at, request_id, kept, None)

    def _explained(self, error: BaseException, request: httpx.Request) -> BaseException:
        """Return what a failure of the network means, without what it may quote of us."""
        detail = QUOTED.sub("", str(error)) or type(error).__name__
        values = {
            "place": request.url.netloc.decode(),
            "path": request.url.path,
            "detail": printable(self.redactor.clean(detail), 120),
            "seconds": self.options.timeout_seconds,
        }
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            message = "The certificate of {place} is not trusted: {detail}. Nothing was sent."
            remedy = "Set ca_file of the connection to the service's certificate authority."
            return ConfigurationError(message.format_map(values), remedy)
        for kinds, message in FAILURES.items():
            if isinstance(error, kinds):
                return Unavailable(message.format_map(values))
        return error


async def _receive(response: httpx.Response) -> bytes:
    """Return a decompressed body. httpx reads 64 KiB at once, which gzip makes 64 MiB at most."""
    if response.headers.get("content-encoding", "").strip().lower() not in ENCODINGS:
        raise httpx.DecodingError("not asked for")
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MAX_BODY:
            raise Unavailable(f"The answer to {response.request.url.path} is larger than 64 MiB.")
    return bytes(body)


def _open_http(connection: Connection, options: ClientOptions) -> httpx.AsyncClient:
    """Return httpx's client. Proxies of the environment count only if a setting says so.

    Raises ConfigurationError for a wrong ca_file or proxy.
    """
    for name in ("httpx", "httpcore"):  # else they log what an answer may echo
        logging.getLogger(name).setLevel(logging.WARNING)
    ca_file = connection.ca_file
    try:
        return httpx.AsyncClient(
            base_url=connection.base_url,
            headers=HEADERS,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            event_hooks={"response": [_keep_location]},
            transport=options.transport,
            verify=ssl.create_default_context(cafile=ca_file) if ca_file else True,
            trust_env=options.use_proxy,
        )
    except OSError as error:
        raise ConfigurationError(
            f"Cannot read ca_file {ca_file} of connection `{connection.name}`: "
            f"{error.strerror or error}. Nothing was requested.",
            "Correct ca_file in connections.toml.",
        ) from None
    except (ValueError, ImportError, httpx.InvalidURL):
        raise ConfigurationError(
            "The proxy that the environment names cannot be used. Nothing was requested.",
            "Correct http_proxy or https_proxy, or set use_proxy = false in settings.toml.",
        ) from None


async def _keep_location(response: httpx.Response) -> None:
    """Take a redirect's address away from httpx, which fails where it is not valid."""
    response.extensions["location"] = response.headers.pop("location", "")


def _without_secrets(location: str) -> str:
    """Return an address without user, query and fragment."""
    try:
        url = httpx.URL(location)
        return printable(url.copy_with(username=None, password=None, query=None, fragment=None))
    except (httpx.InvalidURL, ValueError):
        return "an address that is not valid"
