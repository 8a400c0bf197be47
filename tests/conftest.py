"""What holds for all tests: fixtures, files in memory, which tests are long."""

import gc
import os
import shutil
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
    FOLDER / "metadata/test_postgresql.py",
    FOLDER / "metadata/test_server_session.py",
    FOLDER / "rate_limit/test_postgresql.py",
    FOLDER / "versions/test_lost_lock.py",
)
BUCKET = [
    FOLDER / "files" / f"test_{name}.py"
    for name in ("archive", "configuration", "open_store", "pull", "stopped", "versions")
]
LONG = (
    FOLDER / "sandbox",
    FOLDER / "interface",
    BROWSER,
    OFFICE,
    *POSTGRESQL,
    *BUCKET,
)  # all tests in them

gc.set_threshold(50_000)  # looking for garbage as often as usual takes a tenth of the time
# Every commit waits for the disk; no test can tell whether it did.
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_configure(config: pytest.Config) -> None:
    """Import fixtures where tests run, not in the process that shares them out."""
    if getattr(config.option, "dist", "no") == "no":
        config.pluginmanager.import_plugin("tests.fixtures")
        if os.environ.get("HOMES") == "bucket":
            config.pluginmanager.import_plugin("tests.bucket")
            config.pluginmanager.import_plugin("tests.postgresql")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import what `make test` leaves out, nor tests that need a program without it."""
    if collection_path == CLUSTER:
        return None if config.option.markexpr == "cluster" else True
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of folders and files that are long as a whole."""
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in LONG):
            item.add_marker(pytest.mark.long)
        if item.path.is_relative_to(CLUSTER):
            item.add_marker(pytest.mark.cluster)
