"""A clock that is moved by hand, a limiter without a limit, and a service that follows a script."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import httpx

from pipelines.config.connections import Connection
from pipelines.config.home import Home
from pipelines.config.settings import Settings
from pipelines.core.clock import Clock
from pipelines.core.text import Redactor
from pipelines.http.client import Attempt, ServiceClient
from pipelines.rate_limit.limiter import RateLimiter, Slot

T = TypeVar("T")

BASE_URL = "http://127.0.0.1:8000"
SECRET = "canary-secret/+é-7f3a9c"
API_KEY = "canary-api-key-5d81e2"
os.environ |= {"HTTP_TEST_SECRET": SECRET, "HTTP_TEST_KEY": API_KEY}
EPOCH = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


class HandClock(Clock):
    """Time that passes only when somebody sleeps."""

    passed = 0.0

    def time(self) -> float:
        return EPOCH.timestamp() + self.passed

    def monotonic(self) -> float:
        return self.passed

    async def sleep(self, seconds: float) -> None:
        self.passed += max(0.0, seconds)
        await asyncio.sleep(0)


class Unlimited(RateLimiter):
    """A limiter that remembers its slots and keeps pauses; it gives one slot at a time."""

    def __init__(self, clock: HandClock) -> None:
        self.slots: list[Slot] = []
        self._hand_clock = clock
        self._one = asyncio.Lock()
        self._free_at = 0.0

    @asynccontextmanager
    async def hold(self, slot: Slot) -> AsyncIterator[None]:
        async with self._one:
            await self._hand_clock.sleep(self._free_at - self._hand_clock.passed)
            self.slots.append(slot)
            yield
            slot.ended_at = self._hand_clock.passed

    async def wait_for_pause(self) -> None:
        await self._hand_clock.sleep(self._free_at - self._hand_clock.passed)

    def note_pause(self, seconds: float) -> None:
        pass  # `share_pause` follows

    def note_refusal(self, seconds: float) -> None:
        pass

    async def check_leaving(self) -> None:
        pass

    def share_pause(self, seconds: float) -> None:
        self._free_at = max(self._free_at, self._hand_clock.passed + seconds)


def partner(base_url: str = BASE_URL, **fields: Any) -> Connection:
    given = {"auth_url": base_url, "audience": "partner-sync-sandbox", "client_id": "demo"}
    given |= {"name": "acme", "base_url": base_url, "secret": "HTTP_TEST_SECRET"}
    return Connection.model_validate({**given, **fields})


def merchant(base_url: str = BASE_URL, **fields: Any) -> Connection:
    given = {"surface": "merchant", "base_url": base_url, "secret": "HTTP_TEST_KEY"}
    return Connection.model_validate({"name": "shop", **given, **fields})


class Harness:
    """A client with all that it was given, and the attempts that it reported."""

    def __init__(
        self,
        connection: Connection | None = None,
        network: httpx.AsyncBaseTransport | None = None,
        **settings: Any,
    ) -> None:
        self.connection = connection or partner()
        self.settings, self.network = Settings(home=Home(Path()), **settings), network
        self.clock = HandClock()
        self.limiter: Any = Unlimited(self.clock)
        self.redactor = Redactor()
        self.attempts: list[Attempt] = []

    def client(self) -> ServiceClient:
        limits = (self.limiter, self.redactor, self.clock, self.network)
        return ServiceClient(self.connection, self.settings, *limits)

    def run(self, ask: Callable[[ServiceClient], Awaitable[T]]) -> T:
        """Open a client, ask, close it."""

        async def main() -> T:
            client = self.client()
            async with client.http:
                return await ask(client)

        return asyncio.run(main())

    def page(self) -> Attempt:
        return self.run(self.ask_page)

    def ask_page(self, client: ServiceClient) -> Awaitable[Attempt]:
        return client.page("/v2/usage", 0, 10, self.attempts.append)

    async def pages(self, client: ServiceClient, count: int = 1) -> list[int | None]:
        """Request pages side by side; return their statuses."""
        answers = await asyncio.gather(*(self.ask_page(client) for _ in range(count)))
        return [answer.status for answer in answers]

    @property
    def statuses(self) -> list[int | None]:
        """The statuses of all attempts that failed or were refused."""
        return [attempt.status for attempt in self.attempts]


class Reply(NamedTuple):
    """One answer of a scripted service; it may take seconds of the hand-moved clock."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = MappingProxyType({})
    seconds: float = 0.0


def json_reply(status: int = 200, **members: Any) -> Reply:
    return Reply(status, json.dumps(members).encode())


def page_reply(rows: Iterable[Any] = (), seconds: float = 0.0, **headers: str) -> Reply:
    pagination = {"limit": 10, "offset": 0, "has_more": False, "next_offset": None}
    reply = json_reply(data=list(rows), pagination=pagination)
    return reply._replace(headers=headers, seconds=seconds)


class Script(Harness):
    """A client of a service that answers from a script, the last reply for ever.

    Tokens are `token-1`, `token-2` …; `refused` ones and those older than `expires_in` get 401.
    """

    def __init__(
        self,
        *replies: Reply,
        connection: Connection | None = None,
        tokens: Iterable[Reply] = (),
        refused: Iterable[str] = (),
        expires_in: float = 3600,
    ) -> None:
        super().__init__(connection, network=httpx.MockTransport(self.answer))
        self.replies, self.token_replies = list(replies), list(tokens)
        self.refused, self.expires_in = set(refused), expires_in
        self.requests: list[tuple[float, httpx.Request]] = []
        self.token_requests: list[tuple[float, httpx.Request]] = []

    async def answer(self, request: httpx.Request) -> httpx.Response:
        is_token = request.url.path.endswith("/oauth/token")
        (self.token_requests if is_token else self.requests).append((self.clock.passed, request))
        reply = self._token() if is_token else self._reply(request)
        await self.clock.sleep(reply.seconds)
        head = [(name.encode(), value.encode("latin-1")) for name, value in reply.headers.items()]
        return httpx.Response(reply.status, headers=head, stream=httpx.ByteStream(reply.body))

    def _token(self) -> Reply:
        if self.token_replies:
            return self.token_replies.pop(0)
        token = f"token-{len(self.token_requests)}"
        return json_reply(access_token=token, expires_in=self.expires_in)

    def _reply(self, request: httpx.Request) -> Reply:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        number = token.removeprefix("token-")
        given_at = self.token_requests[int(number) - 1][0] if number.isdigit() else 0.0
        if token in self.refused or (token and self.clock.passed - given_at > self.expires_in):
            return json_reply(401, detail="The token is invalid or missing.")
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def http_date(seconds: float = 0.0) -> str:
    """Return the HTTP date so many seconds after the clock's start."""
    return format_datetime(datetime.fromtimestamp(EPOCH.timestamp() + seconds, UTC), usegmt=True)
