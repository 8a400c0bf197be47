"""Fixtures: a small sandbox, a home with two connections to it, an instance that knows them."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from assets.names import register_connections
from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from tests.assets.homes import ONE, Site
from tests.homes import make_home
from tests.sandbox.running import Running, started


@pytest.fixture(scope="session")
def sandbox_process() -> Iterator[Running]:
    """One sandbox for each worker whose lists fit on a page: these tests are about Dagster."""
    sizes = ("--partners=5", "--usage=60", "--billing=20")
    with started("--rate=1000", *sizes) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, sandbox: Running) -> Home:
    make_home(tmp_path / "home", sandbox, "acme", secret="SANDBOX_CLIENT_SECRET")
    return make_home(tmp_path / "home", sandbox, "beta")


@pytest.fixture
def site(home: Home, sandbox: Running) -> Iterator[Site]:
    """Dagster in this process on a home with the connections `acme` and `beta`."""
    with dg.DagsterInstance.ephemeral() as instance:
        register_connections(instance, ONE, load_settings(home))
        yield Site(home, instance, sandbox)
