"""A fast service, and a home that was synced once, a copy for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.config.home import Home
from tests.homes import copied, synced_home
from tests.sandbox.running import Running, started


@pytest.fixture(scope="session")
def sandbox_process() -> Iterator[Running]:
    """The shared sandbox with a limit that nobody reaches; without one, clients send 5 a second."""
    sizes = ("--partners", "25", "--usage", "1000", "--billing", "100")
    with started("--rate", "1000", *sizes) as running:
        yield running


@pytest.fixture(scope="session")
def synced_template(tmp_path_factory: pytest.TempPathFactory, sandbox_process: Running) -> Home:
    return synced_home(tmp_path_factory, sandbox_process)


@pytest.fixture
def synced(synced_template: Home, tmp_path: Path) -> Home:
    return copied(synced_template, tmp_path / "home")
