"""The sandbox in the test's own process, without sockets, on a clock that the test moves.

Faults of connections need a real one: use ``running.started`` for them.
"""

from dataclasses import dataclass, replace
from typing import Any

import httpx

from sandbox.clients import Client
from sandbox.data.sizes import Sizes
from sandbox.keys import ApiKey
from sandbox.options import Options
from sandbox.service import create_app
from tests.sandbox.running import API_KEY, AUDIENCE, SECRET

URL = "http://sandbox.test"
OPTIONS = Options(
    (Client("demo", SECRET),),
    URL,
    keys=(ApiKey("demo", API_KEY),),
    sizes=Sizes(25, 1500, 150),
    awkward=True,
)
TOKEN_REQUEST = {
    "client_id": "demo",
    "client_secret": SECRET,
    "audience": AUDIENCE,
    "grant_type": "client_credentials",
}


@dataclass
class MovedClock:
    """A clock that stands still until somebody sleeps or moves it; fits sandbox and pipelines."""

    now: float = 1_800_000_000.0
    passed: float = 0.0

    def time(self) -> float:
        return self.now + self.passed

    def monotonic(self) -> float:
        return self.passed

    async def sleep(self, seconds: float) -> None:
        self.move(seconds)

    def move(self, seconds: float) -> None:
        self.passed += max(0.0, seconds)


def transport(clock: MovedClock, **changed: Any) -> httpx.ASGITransport:
    """Give a transport to a new sandbox; ``changed`` replaces fields of its options."""
    return httpx.ASGITransport(create_app(replace(OPTIONS, **changed), clock))


async def fetch_token(client: httpx.AsyncClient) -> str:
    """Fetch a token of the client ``demo``."""
    answer = await client.post("/oauth/token", json=TOKEN_REQUEST)
    return str(answer.raise_for_status().json()["access_token"])
