"""A home that was synced once, a copy for each test; sessions on homes of made-up records."""

from pathlib import Path

import pytest

from pipelines.app.session import AppSession
from pipelines.config.home import Home
from pipelines.core.text import Redactor
from tests.homes import copied, synced_home
from tests.publish.conftest import empty_home, stores
from tests.publish.homes import Stores
from tests.sandbox.running import Running

__all__ = ["empty_home", "stores"]


@pytest.fixture(scope="session")
def synced_template(tmp_path_factory: pytest.TempPathFactory, sandbox_process: Running) -> Home:
    return synced_home(tmp_path_factory, sandbox_process)


@pytest.fixture
def synced(synced_template: Home, tmp_path: Path) -> Home:
    return copied(synced_template, tmp_path / "home")


def session_of(stores: Stores) -> AppSession:
    fields = (stores.settings, stores.metadata, stores.archive, stores.warehouse, stores.clock)
    return AppSession(*fields, Redactor())
