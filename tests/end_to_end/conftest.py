"""Fixtures: homes to sync into, and services to sync from, all of them real."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipelines.cli.sandbox import Service
from pipelines.settings import Settings, load
from tests import ledgers
from tests.sandbox.running import sandboxed

Point = Callable[[Service], Settings]


@pytest.fixture
def point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Point:
    """Point the environment at a service; return the settings of a fresh home."""

    def to(service: Service) -> Settings:
        for name, value in service.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PARTNER_SYNC_HOME", str(tmp_path / "home"))
        if url := ledgers.address():
            monkeypatch.setenv("PARTNER_SYNC_STATE", url)
        return load()

    return to


@pytest.fixture(scope="session")
def unlimited() -> Iterator[Service]:
    """Serve a small data set so fast that no test waits for the rate limit."""
    with sandboxed("--rate=1000", "--partners=120", "--usage=2300", "--billing=230") as service:
        yield service
