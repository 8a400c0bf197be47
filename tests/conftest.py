"""What holds for all tests: fixtures, files in memory, which tests are long."""

import gc
import os
import shutil
import signal
from functools import cache
from pathlib import Path

import pytest

from tests.browser.install import find_chromium
from tests.office.install import find_office

MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder there that only its user can read
ROOM = 4 * 10**9  # bytes: more than all homes of a run
FOLDER = Path(__file__).parent
BROWSER = FOLDER / "browser"
CLUSTER = FOLDER / "cluster"
OFFICE = FOLDER / "office"
POSTGRESQL = (
    FOLDER / "finance/test_database_approvals.py",
    FOLDER / "metadata/test_postgresql.py",
    FOLDER / "metadata/test_server_session.py",
    FOLDER / "rate_limit/test_postgresql.py",
    FOLDER / "versions/test_lost_lock.py",
)
FOLDER_ONLY = ("test_settings.py", "test_store.py")
BUCKET = [
    file for file in FOLDER.glob("files/test_*.py") if file.name not in FOLDER_ONLY
]  # they import obstore
LONG = (
    FOLDER / "sandbox",
    FOLDER / "interface",
    BROWSER,
    OFFICE,
    *POSTGRESQL,
)  # all tests in them

gc.set_threshold(50_000)  # looking for garbage as often as usual takes a tenth of the time
# Every commit waits for the disk; no test can tell whether it did.
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_configure(config: pytest.Config) -> None:
    """Import fixtures where tests run, not in the process that shares them out.

    Programs that tests start are ended with SIGINT, which shells ignore for `make test &`.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if getattr(config.option, "dist", "no") == "no":
        config.pluginmanager.import_plugin("tests.fixtures")
        if _has_buckets(config):
            config.pluginmanager.import_plugin("tests.bucket")
            config.pluginmanager.import_plugin("tests.postgresql")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import what `make test` leaves out, nor tests that need a program without it."""
    if collection_path == CLUSTER:
        return None if "cluster" in config.option.markexpr.split() else True
    if collection_path in BUCKET:
        return None if _has_buckets(config) else True
    is_left_out = collection_path in LONG and config.option.markexpr.startswith("not long")
    return True if is_left_out or collection_path in _without_program() else None


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say where tests are left out because a program is not installed."""
    if config.option.markexpr.startswith("not long"):
        return []
    return [f"NOT RUN: tests/{folder.name}, {why}" for folder, why in _without_program().items()]


def _without_program() -> dict[Path, str]:
    """Return the folders whose tests need a program that this machine does not have, and why."""
    missing = {}
    if not find_chromium():
        missing[BROWSER] = "as there is no browser, or BROWSER=none"
    if not find_office():
        missing[OFFICE] = "as there is no LibreOffice, or OFFICE=none"
    return missing


def pytest_collection_finish() -> None:
    """Keep what was imported out of every search for garbage."""
    gc.freeze()


@cache
def _is_long(file: Path) -> bool:
    """Tell whether all tests of a file are long."""
    return any(file.is_relative_to(folder) for folder in LONG)


def _has_buckets(config: pytest.Config) -> bool:
    """Tell whether tests run in the environment that has an S3 server and its client."""
    return "bucket" in (os.environ.get("HOMES"), *config.option.markexpr.split())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of folders and files as a whole; leave out those that need a bucket."""
    for item in items:
        if item.path in BUCKET:
            item.add_marker(pytest.mark.bucket)
        if _is_long(item.path):
            item.add_marker(pytest.mark.long)
        if item.path.is_relative_to(CLUSTER):
            item.add_marker(pytest.mark.cluster)
    if not _has_buckets(config):
        left_out = [item for item in items if item.get_closest_marker("bucket")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("bucket")]
