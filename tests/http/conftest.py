"""Credentials in the environment, and the sandbox's application in this process."""

import httpx
import pytest

from sandbox.clients import Client
from sandbox.data.sizes import Sizes
from sandbox.options import Limits, Options
from sandbox.service import create_app
from tests.http.support import API_KEY, BASE_URL, KEY_VARIABLE, SECRET, SECRET_VARIABLE, HandClock


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET_VARIABLE, SECRET)
    monkeypatch.setenv(KEY_VARIABLE, API_KEY)


@pytest.fixture(scope="session")
def sandbox_app() -> httpx.ASGITransport:
    """The sandbox's application without a limiter; its clock stands still."""
    clients = (
        Client("demo", SECRET, "distributor"),
        Client("reseller", SECRET, "partner"),
        Client("merchant", SECRET, "organization"),
        Client("narrow", SECRET, "distributor", ("partners:read",)),
    )
    options = Options(
        clients=clients, base_url=BASE_URL, sizes=Sizes(25, 100, 50), limits=Limits(rate=0)
    )
    return httpx.ASGITransport(create_app(options, HandClock()))
