"""Fixtures: an instance in memory that knows two connections, and a home that has them."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from assets.partitions import CONNECTIONS
from pipelines.config.home import Home
from tests.assets.homes import new_home
from tests.sandbox.running import ENVIRONMENT, Running


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
