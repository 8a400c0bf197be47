"""An identity provider and the service behind it, in virtual time."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from pipelines.api.budget import Budget
from pipelines.api.terms import Terms
from pipelines.api.token import ClientCredentials
from pipelines.api.wire import Wire
from pipelines.settings import Connection, Secret
from pipelines.state.runs import Call
from tests.virtual import CLOCK, seconds

SECRET = "canary-7f3a9c"
VARIABLE = "PARTNER_SYNC_CLIENT_SECRET"
HIDDEN = Secret(VARIABLE)


@dataclass
class Provider:
    """An identity provider and the service behind it; tokens are t1, t2 … until told otherwise.

    `refused` are the tokens that the service answers 401; `took` is the seconds of any answer. A
    request for `/late` is always too late: its token opens something else first, and is over then.
    """

    expires_in: int = 3600
    took: float = 0.0
    answer: Callable[[], httpx.Response] | None = None
    refused: set[str] = field(default_factory=set)
    asked: list[tuple[float, httpx.Request]] = field(default_factory=list)
    served: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.host != "login":
            token = request.headers.get("Authorization", "").removeprefix("Bearer ")
            await asyncio.sleep(self.took)
            self.served.append(token)
            if request.url.path == "/late":
                await self.client().get("/")
                return httpx.Response(401)
            return httpx.Response(401 if token in self.refused else 200)
        self.asked.append((seconds(), request))
        number = len(self.asked)
        await asyncio.sleep(self.took)
        if self.answer is not None:
            return self.answer()
        fresh = {"token_type": "Bearer", "expires_in": self.expires_in}
        return httpx.Response(200, json=fresh | {"access_token": f"t{number}"})

    async def record(self, call: Call) -> None:
        self.calls.append(call)

    def client(self, audience: str = "the-api") -> httpx.AsyncClient:
        connection = Connection(
            "default", "https://service", "https://login/realm", audience, "me", HIDDEN
        )
        wire = Wire(httpx.MockTransport(self), Budget(CLOCK, Terms(1000, 1.0)), self.record, CLOCK)
        self.token = ClientCredentials(connection, CLOCK)
        return httpx.AsyncClient(base_url="https://service", transport=wire, auth=self.token)


async def together(http: httpx.AsyncClient, count: int) -> list[int]:
    """Ask so many times at once; return the statuses."""
    answers = await asyncio.gather(*(http.get("/") for _ in range(count)))
    return [answer.status_code for answer in answers]
