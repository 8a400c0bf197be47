"""Fixtures: sandboxes with clients and keys of their own, and a client of the shared sandbox.

A test that needs another limiter, window or other data starts its own by ``running.started``.
"""

from collections.abc import Iterator

import httpx
import pytest

from tests.sandbox.merchants import key_client, keys_file
from tests.sandbox.running import SMALL, Running, clients_file, started


@pytest.fixture(scope="session")
def sandbox_process() -> Iterator[Running]:
    """The sandbox that these tests share: without a limiter, for answers without its headers."""
    with started("--rate", "0", *SMALL) as running:
        yield running


@pytest.fixture(scope="session")
def demo(sandbox_process: Running) -> Iterator[httpx.Client]:
    """A client of the shared sandbox with the token of ``demo``, who may read everything."""
    with sandbox_process.client(sandbox_process.token()) as client:
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
