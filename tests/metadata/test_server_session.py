"""Locks and life signs on a real PostgreSQL: of processes, hosts, and sessions that are lost."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from sys import executable
from typing import Any

import pytest

from pipelines.core.errors import LockHeld, LockLost, StorageFailed
from pipelines.metadata.engine import Metadata
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.processes import living

pytest_plugins = ["tests.postgresql"]
# A process that holds a lock, and its name, until it is killed; on a machine of another name.
HOLD = """
import sys
from pathlib import Path
from pipelines.metadata.engine import Metadata
from pipelines.metadata.locks import hold_lock
metadata = Metadata.open(Path(sys.argv[1]), sys.argv[2])
with hold_lock(metadata.locks, "build"):
    print(metadata.this_process(), flush=True)
    sys.stdin.read()
"""
ELSEWHERE = ("unshare", "--uts", "sh", "-c", 'hostname worker-b; exec "$@"', "sh")
END_SESSIONS = """
SELECT pg_terminate_backend(pid, 9999) FROM pg_stat_activity
WHERE application_name LIKE 'process %'
"""


@pytest.fixture
def metadata(tmp_path: Path, server_url: str) -> Iterator[Metadata]:
    with closing(Metadata.open(tmp_path / "a" / "metadata.db", server_url)) as opened:
        yield opened


@contextmanager
def holder(file: Path, url: str, *, elsewhere: bool = False) -> Iterator[tuple[Popen[str], str]]:
    """Start a process that holds the lock `build`; yield it and its name."""
    command = [executable, "-c", HOLD, str(file), url]
    if elsewhere:
        command = [*ELSEWHERE, *command]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as child:
        assert child.stdout is not None
        yield child, child.stdout.readline().strip()
        child.kill()


def alive(metadata: Metadata, *names: str) -> list[bool]:
    with metadata.transaction() as session:
        found = living(session.connection(), names)
    return [name in found for name in names]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_lock_and_the_name_of_a_killed_process_are_free_at_once(
    metadata: Metadata,
    server_url: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    *,
    elsewhere: bool,
) -> None:
    caplog.set_level(logging.INFO, "pipelines")
    folder = "b" if elsewhere else "a"  # the files of another machine are other files
    file = tmp_path / folder / "metadata.db"
    own_name = metadata.this_process()
    with holder(file, server_url, elsewhere=elsewhere) as (child, name):
        assert name.startswith("worker-b:") == elsewhere
        assert alive(metadata, name, own_name, f"{name}0") == [True, True, False]
        with (
            pytest.raises(LockHeld, match=f"held by process {child.pid} ") as refused,
            hold_lock(metadata.locks, "build", timeout_seconds=0.1),
        ):
            pass
        assert ("on worker-b (`-c " in str(refused.value)) == elsewhere
        assert ("connected since 20" in str(refused.value)) == elsewhere
        assert caplog.messages[0].startswith("Waiting for the lock `build`, held by process ")
        # Locks of other names and other homes are free.
        with hold_lock(metadata.locks, "export", timeout_seconds=0) as has_waited:
            assert not has_waited
        threading.Timer(0.3, child.kill).start()
        with hold_lock(metadata.locks, "build", timeout_seconds=60) as has_waited:
            assert has_waited
            metadata.locks.require("build")
        assert alive(metadata, name, own_name) == [False, True]


def test_homes_in_two_schemas_have_locks_of_their_own(
    metadata: Metadata, server_url: str, tmp_path: Path, administrator: Any
) -> None:
    administrator.execute("CREATE SCHEMA IF NOT EXISTS second")
    other = f"{server_url}&options=-csearch_path%3Dsecond"
    with (
        holder(tmp_path / "b" / "metadata.db", other) as (_child, name),
        hold_lock(metadata.locks, "build", timeout_seconds=0),
    ):
        assert alive(metadata, name) == [True]  # names are of the whole database
        with metadata.transaction():
            second = Metadata.open(tmp_path / "c" / "metadata.db", other, busy_seconds=0)
            with second.transaction():
                """A transaction of one home does not wait for that of another."""
            second.close()


def test_a_process_whose_session_is_ended_has_lost_its_locks(
    metadata: Metadata, server_url: str, tmp_path: Path, administrator: Any
) -> None:
    name = metadata.this_process()
    with ExitStack() as stack:
        stack.enter_context(hold_lock(metadata.locks, "build", timeout_seconds=0))
        metadata.locks.require("build")
        administrator.execute(END_SESSIONS)
        assert alive(metadata, name) == [False]
        with pytest.raises(LockLost, match="lost the lock `build`"):
            metadata.locks.require("build")
        # Another machine has it now, and keeps it when the loser ends.
        with holder(tmp_path / "b" / "metadata.db", server_url):
            assert metadata.this_process() == name
            with pytest.raises(LockLost):
                metadata.locks.require("build")
            # A file excludes the processes of this machine all the same.
            with (
                pytest.raises(LockHeld, match="held by process"),
                hold_lock(metadata.locks, "build", timeout_seconds=0),
            ):
                pass
            stack.close()
            with (
                pytest.raises(LockHeld, match="connected since"),
                hold_lock(metadata.locks, "build", timeout_seconds=0),
            ):
                pass
    with hold_lock(metadata.locks, "build", timeout_seconds=60):
        metadata.locks.require("build")


def test_a_process_gets_its_name_back_after_its_session_was_ended(
    metadata: Metadata, administrator: Any
) -> None:
    name = metadata.this_process()
    administrator.execute(END_SESSIONS)
    deadline = time.monotonic() + 30
    while alive(metadata, name) != [True]:
        assert time.monotonic() < deadline
        metadata.this_process()
        time.sleep(0.1)


def test_an_idle_session_is_not_ended_and_tells_who_it_is(
    metadata: Metadata, administrator: Any
) -> None:
    administrator.execute("SET idle_session_timeout = 0")
    administrator.execute("ALTER ROLE postgres SET idle_session_timeout = '300ms'")
    try:
        administrator.execute(END_SESSIONS)
        with hold_lock(metadata.locks, "build", timeout_seconds=5):
            time.sleep(1)
            metadata.locks.require("build")
    finally:
        administrator.execute("ALTER ROLE postgres RESET idle_session_timeout")


def test_a_server_that_is_away_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="refused"):
        Metadata.open(tmp_path / "metadata.db", "postgresql://somebody@127.0.0.1:1/database")
