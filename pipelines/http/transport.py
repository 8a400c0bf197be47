"""The transport: every request leaves through it, with a deadline and a cap.

An answer leaves it as an Attempt: whole, decompressed, and with headers of an allowlist only.
"""

import asyncio
import logging
import math
import re
import ssl
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from pipelines.config.connections import Connection
from pipelines.config.settings import Settings
from pipelines.core.clock import Clock
from pipelines.core.errors import ConfigurationError, PartnerSyncError, Unavailable
from pipelines.core.text import Redactor, printable
from pipelines.http.certificates import certificate_problem, trusted
from pipelines.http.proxies import proxy_for
from pipelines.http.retry import Attempt, wait_seconds
from pipelines.rate_limit.known_pause import MustWait
from pipelines.rate_limit.limiter import RateLimiter

# Decompressed. A page of 500 records of 128 KiB is as large.
MAX_BODY = 64 * 2**20
LONGEST_NAME = 40  # characters of a header that are quoted
DOCUMENTS = "/docs/"  # paths that no limit counts ("Limits" of the interface document)
# For all else, the deadline of the whole request counts.
CONNECT_SECONDS = 10.0
# The proof by counting needs each page as it is now, so no cache may answer.
HEADERS = {"Accept-Encoding": "gzip", "Cache-Control": "no-cache"}
COMPRESSED = {"gzip", "x-gzip", "deflate"}  # httpx decodes them
# How some services name a character set, or nothing, in Content-Encoding: the body is as it is.
PLAIN = {"identity", "none", "utf-8", "utf8", "us-ascii", "iso-8859-1", "binary", "8bit"}
BOM = b"\xef\xbb\xbf"
# How JSON in UTF-16 begins. Without a mark: its first character is an ASCII one.
WIDE = {
    "utf-16": re.compile(rb"\xff\xfe|\xfe\xff"),
    "utf-16-le": re.compile(rb"[^\0]\0"),
    "utf-16-be": re.compile(rb"\0[^\0]"),
}
# Character sets of one byte that an answer may declare, as Python names them.
CHARSETS = {
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "iso_8859-1", "latin-1", "latin1"), "latin-1"),
    **dict.fromkeys(("windows-1252", "cp1252"), "cp1252"),
}
KEPT_HEADERS = (
    *("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"),
    *("date", "age", "content-type"),
)
# Events of httpx's `trace` extension. Nothing waits between LEAVING and the write.
LEAVING = "http11.send_request_headers.started"
SENT = "http11.send_request_headers.complete"
QUOTED = re.compile(r"\W*(bytearray\(|b['\"]).*", re.DOTALL)  # what h11 quotes of an answer
PRIVATE = re.compile(r"[^/\\]*@|[?#].*", re.DOTALL)  # user, query and fragment of an address
logger = logging.getLogger(__name__)
EXPECTED = (PartnerSyncError, httpx.RequestError, TimeoutError, asyncio.CancelledError)


@dataclass(eq=False, repr=False)
class Transport:
    """Sends requests of one connection. Redirects are never followed, cookies never kept.

    `network` is another one than that of this machine, for tests.
    """

    connection: Connection
    settings: Settings
    limiter: RateLimiter
    redactor: Redactor
    clock: Clock
    network: httpx.AsyncBaseTransport | None = None
    _deviations: set[tuple[str, str]] = field(default_factory=set)

    @cached_property
    def http(self) -> httpx.AsyncClient:
        """The client that sends. Raises ConfigurationError for a ca_file or proxy it cannot use."""
        # Else they log what an answer may echo.
        for name in ("httpx", "httpcore"):
            logging.getLogger(name).setLevel(logging.WARNING)
        verify = trusted(self.connection, use_variables=self.settings.use_proxy)
        return httpx.AsyncClient(
            base_url=self.connection.base_url,
            headers=HEADERS,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            event_hooks={"response": [_keep_location]},
            transport=self.network,
            verify=verify,
            mounts=self._proxies(verify),
            trust_env=False,
        )

    def _proxies(self, verify: ssl.SSLContext) -> dict[str, httpx.AsyncBaseTransport]:
        """Return how to reach those of our addresses that need a proxy."""
        transports = dict[str, httpx.AsyncBaseTransport]()
        if not self.settings.use_proxy:
            return transports
        addresses = [self.connection.base_url]
        if self.connection.auth_url:
            addresses.append(self.connection.auth_url)
        for address in addresses:
            proxy = proxy_for(address)
            if proxy:
                url = httpx.URL(address)
                transports[f"{url.scheme}://{url.netloc.decode()}"] = _proxied(proxy, verify)
        return transports

    async def send(
        self,
        request: httpx.Request,
        attempt: Attempt,
        slot: AsyncExitStack,
        seconds: float = math.inf,
    ) -> None:
        """Send a request and receive the answer, whose body may still hold a credential.

        `slot`, which holds the request's slot, is closed with the headers of the answer. Where the
        answer may ask for a pause it stays open, so that nobody sends before the pause is known. A
        failure MustWait says that nothing was sent.
        """

        async def note(event: str, _info: object) -> None:
            # A request waits for a token, or a connection, after it has its slot. On a busy machine
            # 4 of 41 pauses that began meanwhile were broken, by 15 to 52 ms.
            if event == LEAVING:
                await self.limiter.check_leaving()
            elif event == SENT:
                attempt.sent_at = self.clock.time()

        request.extensions["trace"] = note
        attempt.sent_at = self.clock.time()  # networks in tests do not trace
        try:
            async with (
                asyncio.timeout(min(seconds, self.settings.request_timeout_seconds)),
                aclosing(await self.http.send(request, stream=True)) as response,
            ):
                self._read_head(response, attempt)
                if not attempt.may_pause:
                    await slot.aclose()
                attempt.body = await self._receive(response)
        except EXPECTED as error:
            attempt.failure = self._explained(error, request.url)
        attempt.received_at = self.clock.time()
        if attempt.may_pause:
            pause = wait_seconds(attempt, self.clock.time())
            if pause:
                self.limiter.share_pause(pause)

    async def send_without_slot(
        self, method: str, url: str, json: object = None, seconds: float = math.inf
    ) -> Attempt:
        """Send what no limit counts, when no pause is on; return what came of it.

        It has so many `seconds`, and no more than any request. What is below /docs/ is optional: a
        pause that it asks for is about no other request.
        """
        while True:
            # Also a pause that a run before was asked for.
            await self.limiter.wait_for_pause()
            request = self.http.build_request(method, url, json=json)
            attempt = Attempt(is_optional=DOCUMENTS in request.url.path)
            await self.send(request, attempt, AsyncExitStack(), seconds)
            if not isinstance(attempt.failure, MustWait):
                return attempt

    def _read_head(self, response: httpx.Response, attempt: Attempt) -> None:
        """Note what is known when the headers of an answer have arrived."""
        attempt.answered_at = self.clock.time()
        attempt.status = response.status_code
        clean = self.redactor.clean
        headers = response.headers
        attempt.headers = {name: clean(headers[name]) for name in KEPT_HEADERS if name in headers}
        location = response.extensions["location"]
        if location:
            attempt.headers["location"] = printable(PRIVATE.sub("", clean(location)))
        attempt.request_id = printable(clean(headers.get("x-request-id", ""))) or None
        # Now, because others must not send meanwhile. The body may ask for more.
        if attempt.may_pause:
            pause = wait_seconds(attempt, attempt.answered_at)
            if attempt.status == HTTPStatus.TOO_MANY_REQUESTS:
                self.limiter.note_refusal(pause)
            else:
                self.limiter.note_pause(pause)

    async def _receive(self, response: httpx.Response) -> bytes:
        """Return a decompressed body in UTF-8, without a byte order mark.

        httpx reads 64 KiB at once, which gzip makes 64 MiB at most.
        """
        path = response.request.url.path
        self._check_encoding(response)
        pieces = list[bytes]()
        size = 0
        async for piece in response.aiter_bytes():
            pieces.append(piece)
            size += len(piece)
            if size > MAX_BODY:
                raise Unavailable(f"The answer to {path} is larger than 64 MiB.")
        body = b"".join(pieces)
        if body.startswith(BOM):
            self.note_deviation(path, "the answer begins with a byte order mark")
            return body.removeprefix(BOM)
        return self._in_utf8(body, response)

    def _in_utf8(self, body: bytes, response: httpx.Response) -> bytes:
        """Return a body in UTF-8, as JSON has to be; unchanged where nothing says what it is in."""
        encoding = _wide_encoding(body)
        if not encoding:
            encoding = CHARSETS.get((response.charset_encoding or "").lower(), "")
            # Many servers declare a character set that is not the one of their JSON.
            if not encoding or _is_utf8(body):
                return body
        try:
            converted = body.decode(encoding).encode()
        except UnicodeDecodeError:
            return body
        self.note_deviation(response.request.url.path, f"the answer is in {encoding}, not in UTF-8")
        return converted

    def _check_encoding(self, response: httpx.Response) -> None:
        """Tell httpx how to decode. Raises DecodingError for an encoding it cannot decode."""
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if not encoding:
            return
        if encoding in PLAIN:
            del response.headers["content-encoding"]
        elif encoding in COMPRESSED:
            response.headers["content-encoding"] = encoding.removeprefix("x-")
        else:
            raise httpx.DecodingError(f"it is encoded as {encoding}, which was not requested")
        if encoding not in {"identity", "gzip"}:
            shown = printable(encoding, LONGEST_NAME)
            self.note_deviation(response.request.url.path, f"Content-Encoding is `{shown}`")

    def note_deviation(self, path: str, what: str) -> None:
        """Log once how answers differ from the interface document, where nothing depends on it."""
        if (path, what) not in self._deviations:
            self._deviations.add((path, what))
            logger.info(
                "%s: %s differs from the interface document: %s. It is read all the same.",
                self.connection.name,
                path,
                what,
            )

    def _explained(self, error: BaseException, url: httpx.URL) -> BaseException:
        """Return what a failure of the network means, without what it may quote of us."""
        place = url.netloc.decode()
        detail = QUOTED.sub("", str(error)) or type(error).__name__
        detail = printable(self.redactor.clean(detail), 120)
        problem = certificate_problem(error, place)
        if problem:
            return problem
        match error:
            case TimeoutError():
                seconds = self.settings.request_timeout_seconds
                return Unavailable(f"{place} did not answer {url.path} whole within {seconds:g} s.")
            case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.ProxyError():
                return Unavailable(f"No connection to {place}.")
            case httpx.DecodingError():
                return Unavailable(f"The answer to {url.path} cannot be decompressed: {detail}.")
            case httpx.RequestError():
                return Unavailable(f"The connection to {place} broke off ({url.path}): {detail}.")
        return error


def _wide_encoding(body: bytes) -> str:
    """Return the encoding of a body with two bytes a character; empty for any other."""
    return next((name for name, begin in WIDE.items() if begin.match(body)), "")


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _proxied(proxy: httpx.Proxy, verify: ssl.SSLContext) -> httpx.AsyncHTTPTransport:
    try:
        return httpx.AsyncHTTPTransport(verify=verify, trust_env=False, proxy=proxy)
    except ImportError:
        raise ConfigurationError(
            f"A proxy of the kind {proxy.url.scheme} is not supported. Nothing was requested.",
            "Set http_proxy, https_proxy or all_proxy to an HTTP proxy, or set use_proxy = false "
            "in settings.toml.",
        ) from None


async def _keep_location(response: httpx.Response) -> None:
    """Take a redirect's address away from httpx, which fails where it is not valid."""
    response.extensions["location"] = response.headers.pop("location", "")
