"""Credentials in the environment, and the sandbox's application in this process."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from sandbox.clients import Client
from sandbox.data.sizes import Sizes
from sandbox.keys import ApiKey
from sandbox.options import Limits, Options
from sandbox.service import create_app
from tests.http.support import (
    API_KEY,
    BASE_URL,
    KEY_VARIABLE,
    SECRET,
    SECRET_VARIABLE,
    Desk,
    HandClock,
    merchant,
    partner,
)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET_VARIABLE, SECRET)
    monkeypatch.setenv(KEY_VARIABLE, API_KEY)


@dataclass(frozen=True)
class Inside:
    """The sandbox's application, and the clock that it shares with its clients."""

    transport: httpx.ASGITransport
    clock: HandClock

    def desk(self, **fields: Any) -> Desk:
        return Desk(partner(**fields), self.transport, clock=self.clock)

    def merchant_desk(self) -> Desk:
        return Desk(merchant(), self.transport, clock=self.clock)

    def fault(self, name: str, **scope: Any) -> None:
        """Switch a fault on."""
        self.control("POST", "/faults", {"name": name, **scope})

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """Ask a control route."""

        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(transport=self.transport, base_url=BASE_URL) as client:
                return await client.request(method, f"/__sandbox__{path}", json=body)

        answer = asyncio.run(ask())
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None


def started_inside(**options: Any) -> Inside:
    clock = HandClock()
    actors: tuple[tuple[str, Any], ...] = (
        ("demo", "distributor"),
        ("reseller", "partner"),
        ("merchant", "organization"),
    )
    clients = tuple(Client(name, SECRET, actor) for name, actor in actors)
    narrow = Client("narrow", SECRET, "distributor", ("partners:read",))
    app = create_app(
        Options(
            clients=(*clients, narrow),
            base_url=BASE_URL,
            sizes=Sizes(25, 1500, 150),
            keys=(ApiKey("shop", API_KEY, organization=0, login="anna"),),
            **options,
        ),
        clock,
    )
    return Inside(httpx.ASGITransport(app), clock)


@pytest.fixture(scope="session")
def application() -> Inside:
    """One application without a limiter for all tests of a worker."""
    return started_inside(limits=Limits(rate=0))


@pytest.fixture
def inside(application: Inside) -> Iterator[Inside]:
    """The application for one test; what the test switched on is switched off afterwards."""
    yield application
    application.control("POST", "/reset")
