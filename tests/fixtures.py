"""Fixtures of all tests, and hypothesis: for the processes in which tests run.

Fixtures:
    sandbox: a small sandbox that nobody waits for, reset for the test. All share its process.
    sandbox_process: the same process for fixtures of a wider scope, which must not change it.
    synced: a copy of a home that was synced with it once.
    open_home: opens a copy of the home that a function makes; it is made once for a process.
    stores, published: two such homes.

A test that needs another sandbox starts it with ``tests.sandbox.running.started``.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import hypothesis
import pytest

from pipelines.config.home import Home
from tests.homes import copied, make_home, sync_once, synced_home
from tests.sandbox.running import SMALL, Running, started
from tests.versions.homes import OpenHome, Stores, home_of, made_home, publish_ten

# Examples are the same each time where CI is set, and random elsewhere.
hypothesis.settings.register_profile(
    "partner-sync", deadline=None, derandomize=bool(os.environ.get("CI"))
)
hypothesis.settings.load_profile("partner-sync")


@pytest.fixture(scope="session")
def sandbox_process() -> Iterator[Running]:
    """One fast sandbox for each worker: 25 partners, 1,500 usage rows, 150 bills.

    The environment variable SEED chooses other data.
    """
    with started("--rate", "1000", "--seed", os.environ.get("SEED", "7"), *SMALL) as running:
        yield running


@pytest.fixture
def sandbox(sandbox_process: Running) -> Iterator[Running]:
    """The shared sandbox for one test, without faults, changes and statistics of other tests.

    What is written over the merchant surface stays.
    """
    sandbox_process.reset()  # a test that has no such fixture may have sent requests before
    yield sandbox_process
    sandbox_process.reset()


@pytest.fixture
def synced(tmp_path_factory: pytest.TempPathFactory, sandbox: Running, tmp_path: Path) -> Home:
    """A home with version 1 of all lists of the shared sandbox."""
    if os.environ.get("HOMES") == "bucket":
        home = make_home(tmp_path / "home", sandbox)
        sync_once(home)
        sandbox.reset()
        return home
    home = synced_home(tmp_path_factory, sandbox)
    sandbox.reset()  # the first test of a process has just synced it
    return copied(home, tmp_path / "home")


@pytest.fixture
def open_home(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[OpenHome]:
    """Opens a copy of the home that a function makes, at the time when it was made.

    With HOMES=bucket in the environment, its files are in a bucket.
    """
    with ExitStack() as at_end:

        def open_home(make: Callable[[Stores], object]) -> Stores:
            stores = made_home(tmp_path_factory, make).copied(tmp_path / make.__name__)
            at_end.callback(stores.metadata.close)
            if os.environ.get("HOMES") == "bucket":
                from tests.on_bucket import moved  # noqa: PLC0415 - needs obstore

                bucket = request.getfixturevalue("bucket")
                return moved(stores, replace(bucket, url=f"{bucket.url}-{make.__name__}"))
            return stores

        yield open_home


stores = home_of(repr)  # without any scan
published = home_of(publish_ten)  # its version 1 has the rows u1 to u10 of acme/usage
