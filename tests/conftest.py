"""What holds for every test: no failure for a busy machine's speed, homes in memory.

Hypothesis searches at random; where the environment variable CI is set it tries the same each time.
"""

import gc
import os
import shutil
from pathlib import Path

import hypothesis
import pytest

MEMORY = Path("/dev/shm")  # noqa: S108 pytest makes a folder of its own there, for its user alone
ROOM = 4 * 10**9  # bytes: all homes of a run, several times

# What is registered takes the rest from hypothesis' own profile, `default` or `ci`.
hypothesis.settings.register_profile("partner-sync", deadline=None)
hypothesis.settings.load_profile("partner-sync")
# Every commit waits for the disk, which tests ask for by the thousand and none can observe.
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
# It adds 0.3 s to a publication, of which tests make a thousand; its own tests switch it on.
os.environ.setdefault("PARTNER_SYNC_RECONCILE", "false")
# `make test-distributed` sets it; the packages of several machines are in its environment alone.
collect_ignore = [] if os.environ.get("TEST_STATE") else ["distributed"]
gc.disable()  # while thousands of tests are collected, which stay


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Let the garbage collector look at what tests make, and not at the tests."""
    gc.freeze()
    gc.enable()
