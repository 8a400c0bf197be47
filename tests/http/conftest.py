"""Credentials in the environment, and the sandbox's application in this process."""

import httpx
import pytest

from sandbox.clients import Client
from sandbox.data.sizes import Sizes
from sandbox.options import Limits, Options
from sandbox.service import create_app
from tests.http.support import API_KEY, BASE_URL, KEY_VARIABLE, SECRET, HandClock, Harness, partner

CLIENTS = (
    Client("demo", SECRET, "distributor"),
    Client("reseller", SECRET, "partner"),
    Client("merchant", SECRET, "organization"),
    Client("narrow", SECRET, "distributor", ("partners:read",)),
)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_TEST_SECRET", SECRET)
    monkeypatch.setenv(KEY_VARIABLE, API_KEY)


@pytest.fixture(scope="session")
def sandboxed() -> dict[str, Harness]:
    """Clients of the sandbox's application, without a limiter; its clock stands still."""
    sizes, limits = Sizes(25, 100, 50), Limits(rate=0)
    options = Options(clients=CLIENTS, base_url=BASE_URL, sizes=sizes, limits=limits)
    transport = httpx.ASGITransport(create_app(options, HandClock()))
    return {each.id: Harness(partner(client_id=each.id), transport) for each in CLIENTS}
