"""What holds for all tests: hypothesis, files in memory, the shared sandbox, which tests are long.

Fixtures:
    sandbox: a small sandbox that nobody waits for, reset for the test. All share its process.
    sandbox_process: the same process for fixtures of a wider scope, which must not change it.
    open_home: opens a copy of the home that a function makes; it is made once for a process.
    stores, published: two such homes.

A test that needs another sandbox starts it with ``tests.sandbox.running.started``.
"""

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import hypothesis
import pytest

from tests.browser.install import find_chromium
from tests.publish.homes import OpenHome, Stores, home_of, made_home, publish_ten
from tests.sandbox.running import SMALL, Running, started

MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder there that only its user can read
ROOM = 4 * 10**9  # bytes: more than all homes of a run
FOLDER = Path(__file__).parent
BROWSER = FOLDER / "browser"
LONG = (FOLDER / "sandbox", FOLDER / "interface", BROWSER)  # all tests in these folders are long

# Examples are the same each time where CI is set, and random elsewhere.
hypothesis.settings.register_profile(
    "partner-sync", deadline=None, derandomize=bool(os.environ.get("CI"))
)
hypothesis.settings.load_profile("partner-sync")
gc.set_threshold(50_000)  # looking for garbage as often as usual takes a tenth of the time
# Every commit waits for the disk; no test can tell whether it did.
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import what `make test` leaves out, nor tests that need a browser without one."""
    is_left_out = collection_path in LONG and config.option.markexpr == "not long"
    return True if is_left_out or (collection_path == BROWSER and not find_chromium()) else None


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say where tests are left out because no browser is installed."""
    left_out = config.option.markexpr != "not long" and not find_chromium()
    return "NOT RUN: tests/browser, as there is no browser, or BROWSER=none" if left_out else None


def pytest_collection_finish() -> None:
    """Keep what was imported out of every search for garbage."""
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of folders that are long as a whole."""
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in LONG):
            item.add_marker(pytest.mark.long)


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
def open_home(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[OpenHome]:
    """Opens a copy of the home that a function makes, at the time when it was made."""
    with ExitStack() as at_end:

        def open_home(make: Callable[[Stores], object]) -> Stores:
            stores = made_home(tmp_path_factory, make).copied(tmp_path / make.__name__)
            at_end.callback(stores.metadata.close)
            return stores

        yield open_home


stores = home_of(repr)  # without any scan
published = home_of(publish_ten)  # its version 1 has the rows u1 to u10 of acme/usage
