"""A home that was synced once, a copy for each test."""

from pathlib import Path

import pytest

from pipelines.config.home import Home
from tests.homes import copied, synced_home
from tests.publish.conftest import empty_home, stores
from tests.sandbox.running import Running

__all__ = ["empty_home", "stores"]


@pytest.fixture(scope="session")
def synced_template(tmp_path_factory: pytest.TempPathFactory, sandbox_process: Running) -> Home:
    return synced_home(tmp_path_factory, sandbox_process)


@pytest.fixture
def synced(synced_template: Home, tmp_path: Path) -> Home:
    return copied(synced_template, tmp_path / "home")
