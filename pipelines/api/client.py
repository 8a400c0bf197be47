"""One request, asked until it is answered: each layer adds the one concern it is named for.

page · whoami         what is asked for
_ask                  failures that may pass
_ask_in_time          429s
_exchange             one request, one whole body
signature (httpx.Auth) token or API key
wire (transport)      the request budget, the ledger, caps
"""

import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

import httpx
import msgspec

from pipelines.api import actor, body, page, problem, retry, signature
from pipelines.api.apikey import ApiKey
from pipelines.api.budget import Budget
from pipelines.api.page import Answer, Page
from pipelines.api.problem import Problem
from pipelines.api.retry import Quota
from pipelines.api.signature import Signature
from pipelines.api.skew import Skew, measured
from pipelines.api.terms import ALONE, Seat, Terms
from pipelines.api.wire import Record, Wire
from pipelines.clock import Clock
from pipelines.errors import ConfigurationError, ContractBroken, ServiceError, Unavailable
from pipelines.settings import Connection, Settings
from pipelines.streams.base import Stream

T = TypeVar("T")
IDLE = 30.0  # seconds without a byte
TIMEOUT = httpx.Timeout(IDLE, connect=5.0, pool=None)
# Kept of each answer: the three rate-limit headers, and the seconds it spent in a cache.
KEPT_HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "age")
# The proof by count needs each page as it is now: no cache may answer without asking the service.
FRESH = {"Cache-Control": "no-cache"}


class Client:
    """Asks one service on behalf of one connection."""

    def __init__(self, http: httpx.AsyncClient, token: Signature, budget: Budget) -> None:
        self._http = http
        self._token = token
        self._budget = budget
        self._clock = budget.clock
        self._quota = Quota()
        self._let_in = False  # whether the service ever accepted a signature of ours
        self._rows: Counter[str] = Counter()  # by path
        self.skew: Skew | None = None  # as the last answer tells it

    async def page(self, stream: Stream, offset: int, limit: int | None = None) -> Page:
        """Return the page of a list at an offset, the largest that the document allows."""
        query = {"limit": limit or stream.limit, "offset": offset}
        request = self._http.build_request(
            "GET",
            stream.path,
            params=query,
            headers=FRESH,
            extensions={"stream": stream.name},
        )
        found = await self._ask(request, lambda answer: page.read(answer, offset))
        self._rows[request.url.path] += found.rows
        return found

    def ahead(self) -> bool:
        """Say whether latency leaves allowance unused: a page may be asked for ahead."""
        return self._budget.ahead()

    async def whoami(self) -> dict[str, object]:
        """Return what the service says of the caller."""
        return await self._ask(self._http.build_request("GET", "/v2/whoami"), _object)

    def claims(self) -> dict[str, object]:
        """Return what the token in use says of itself, unverified; empty before the first."""
        return self._token.claims()

    @property
    def address(self) -> httpx.URL:
        """The address of the service."""
        return self._http.base_url

    async def unsigned(self, address: str, cap: int) -> tuple[httpx.Response, bytes]:
        """Return an answer of `cap` bytes at most, whatever its status; send no credentials."""
        request = self._http.build_request("GET", address, extensions={"cap": cap})
        with _in_words():
            response = await self._http.send(request, auth=None, stream=True)
            return response, await body.whole(response)

    async def _ask(self, request: httpx.Request, read: Callable[[Answer], T]) -> T:
        async for attempt in retry.transient(self._clock, self._quota):
            with attempt:
                answer = read(await self._ask_in_time(request))
                self._quota.earn()
                return answer
        raise AssertionError("tenacity raises what the last attempt raised")

    async def _ask_in_time(self, request: httpx.Request) -> Answer:
        async for attempt in retry.rate_limited():
            with attempt:
                return await self._exchange(request, attempt.retry_state.attempt_number)
        raise AssertionError("tenacity raises what the last attempt raised")

    async def _exchange(self, request: httpx.Request, attempt: int) -> Answer:
        with _in_words():
            response = await self._http.send(request, stream=True)
            content = await body.whole(response)
        if response.has_redirect_location:
            target = problem.place(response.headers["location"])
            raise ContractBroken(f"{request.url.host} redirects to {target}; set base_url")
        if not response.is_success:
            raise self._refusal(problem.read(response, content, self._clock.wall()), attempt)
        self._let_in = True
        answer = _answer(response, content)
        sent_at, answered_at = answer.sent_at, answer.answered_at
        shift = self._clock.shift
        said = response.headers.get("date")
        self.skew = measured(said, sent_at - shift, answered_at - shift)
        return answer

    def _refusal(self, failed: Problem, attempt: int) -> ServiceError:
        """Return what a failed answer means, in the user's words; a 429 stops everybody."""
        if failed.status == httpx.codes.NOT_FOUND:
            base = str(self._http.base_url).rstrip("/")
            path = failed.path.removeprefix(self._http.base_url.path.rstrip("/"))
            return ContractBroken(f"{path} does not exist at {base} (404); set base_url")
        if failed.status == httpx.codes.UNAUTHORIZED:
            rows = self._rows[failed.path] if self._let_in else None
            return retry.locked_out(failed, rows, self._token.rejected)
        error = retry.failure(failed, self._clock.wall())
        if failed.status == retry.TOO_MANY_REQUESTS:
            self._budget.block(retry.pause(failed.retry_after, attempt))
        return error


def _answer(response: httpx.Response, content: bytes) -> Answer:
    headers = response.headers
    return Answer(
        path=response.request.url.path,
        body=content,
        status=response.status_code,
        request_id=headers.get("x-request-id"),
        rate_limit={name: headers[name] for name in KEPT_HEADERS if name in headers},
        sent_at=response.extensions["sent_at"],
        answered_at=response.extensions["answered_at"],
    )


@contextmanager
def _in_words() -> Iterator[None]:
    """Say in our words what the network's failures mean."""
    try:
        yield
    except httpx.TransportError as error:
        url = error.request.url
        place = f"{url.host}:{url.port or 443}"
        if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
            if _certificate_refused(error):
                raise ConfigurationError(
                    f"certificate of {url.host} not trusted: {problem.cleaned(error)}; set ca_file"
                ) from None
            raise Unavailable(f"no connection to {place}") from None
        if isinstance(error, httpx.TimeoutException):
            raise Unavailable(f"{url.path}: no answer from {place} in {IDLE:.0f} s") from None
        raise Unavailable(
            f"{url.path}: no answer from {place}", said=problem.cleaned(error)
        ) from None
    except httpx.DecodingError as error:
        raise Unavailable(f"{error.request.url.path}: answer cannot be decompressed") from None


def _certificate_refused(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _object(answer: Answer) -> dict[str, object]:
    try:
        return msgspec.json.decode(answer.body, type=dict[str, object])
    except problem.UNREADABLE:
        text = f"{answer.path}: answer is not a JSON object"
        raise Unavailable(text, tries=2, said=problem.redacted(answer.body)) from None


@asynccontextmanager
async def connect(
    connection: Connection,
    settings: Settings,
    clock: Clock,
    record: Record,
    seat: Seat = ALONE,
) -> AsyncIterator[Client]:
    """Yield a client of one connection; environment proxies and redirects are never followed."""
    trust = trusted(connection.ca_file) if connection.ca_file else _built_in()
    network = httpx.AsyncHTTPTransport(verify=trust, trust_env=False)
    token = signature.of(connection, clock)
    terms = Terms(settings.rate, settings.window, connection.allowance)
    budget = Budget(clock, terms, seat, partial(_actor, connection, token))
    async with httpx.AsyncClient(
        base_url=connection.base_url,
        headers={"Accept-Encoding": "gzip"},
        auth=token,
        transport=Wire(network, budget, record, clock),
        timeout=TIMEOUT,
        follow_redirects=False,
        trust_env=False,
    ) as http:
        yield Client(http, token, budget)


@cache
def _built_in() -> ssl.SSLContext:
    """Return the trust that comes with us, read once for every connection: it costs 60 ms."""
    return trusted(None)


def trusted(own: Path | None) -> ssl.SSLContext:
    """Return whom a connection trusts: an authority of its own, else those that come with us.

    Anew each time: HTTP writes into it that it is HTTP, which a mail server may refuse.
    """
    try:
        if own is None:
            return httpx.create_ssl_context(trust_env=False)
        return ssl.create_default_context(cafile=own)
    except OSError as error:
        raise ConfigurationError(f"ca_file {own}: {error.strerror or error}") from None


def _actor(connection: Connection, token: Signature) -> str:
    """Return whose budget it is; asked at the first signed request, when there is a token."""
    if connection.budget_key:
        return connection.budget_key
    if isinstance(token, ApiKey):
        return actor.of_api_key(connection.base_url, token.fingerprint())
    return actor.of_token(connection.base_url, token.claims(), connection.client_id)
