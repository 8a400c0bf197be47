"""Fixtures: a small sandbox, a home with two connections to it, an instance that knows them."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from assets.partitions import CONNECTIONS
from pipelines.config.home import Home
from tests.assets.homes import new_home
from tests.sandbox.running import ENVIRONMENT, Running, started


@pytest.fixture(scope="session")
def small_process() -> Iterator[Running]:
    """One sandbox for each worker whose lists fit on a page: these tests are about Dagster."""
    with started("--rate", "0", "--partners", "5", "--usage", "60", "--billing", "20") as running:
        yield running


@pytest.fixture
def sandbox(small_process: Running) -> Iterator[Running]:
    """The small sandbox for one test; its faults and statistics are undone afterwards."""
    yield small_process
    small_process.reset()


@pytest.fixture
def home(tmp_path: Path, sandbox: Running, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    return new_home(tmp_path / "home", sandbox, "acme", "beta")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        made.add_dynamic_partitions(CONNECTIONS, ["acme", "beta"])
        yield made
