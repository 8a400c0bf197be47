"""Fixtures: sandboxes that several tests share, started once a session.

Here: the unlimited ones. Not here: those whose limiter, window or data one test needs (it starts
its own by ``running.started``).
"""

from collections.abc import Iterator

import httpx
import pytest

from tests.sandbox.merchants import key_client, keys_file
from tests.sandbox.running import Running, clients_file, started


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Running]:
    """A small sandbox with the client ``demo`` and no limiter."""
    with started(
        "--rate", "0", "--partners", "25", "--usage", "2345", "--billing", "234"
    ) as running:
        yield running


@pytest.fixture(scope="session")
def patient() -> Iterator[Running]:
    """Start the sandbox of ``tried``."""
    with started(
        "--rate", "0", "--partners", "25", "--usage", "1500", "--billing", "150"
    ) as running:
        yield running


@pytest.fixture
def tried(patient: Running) -> Iterator[Running]:
    """A sandbox for one test's faults and changes; whatever it did is undone afterwards."""
    yield patient
    patient.reset()


@pytest.fixture(scope="session")
def demo(sandbox: Running) -> Iterator[httpx.Client]:
    """A client of ``sandbox`` with the token of ``demo``, who may read everything."""
    with sandbox.client(sandbox.token()) as client:
        yield client


@pytest.fixture(scope="session")
def staffed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A sandbox with the clients of ``running.CLIENTS`` and no limiter."""
    file = clients_file(tmp_path_factory.mktemp("clients"))
    with started("--rate", "0", "--usage", "30", "--clients", str(file)) as running:
        yield running


@pytest.fixture(scope="module")
def merchants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A sandbox with the keys of ``merchants.KEYS``, one for each module: its tests write."""
    file = keys_file(tmp_path_factory.mktemp("clients"))
    with started("--rate", "0", "--usage", "30", "--clients", file) as running:
        yield running


@pytest.fixture(scope="module")
def admin(merchants: Running) -> Iterator[httpx.Client]:
    """A client with the key of a login that may do everything."""
    with key_client(merchants, "admin") as client:
        yield client
