"""Named locks: one at a time, freed by a death, whether they are files or PostgreSQL's."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine

from pipelines.state import locks
from pipelines.state.locks import Locks
from tests import ledgers

HOLDING = """
import sys
from pathlib import Path
from pipelines.state import database, locks

url, folder = sys.argv[1], Path(sys.argv[2])
ledger = database.connect(folder, url if url.startswith("postgresql") else None)
held = locks.of(ledger, folder).lock("fold", again=True)
assert held.acquire()
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def named(ledger: Engine, tmp_path: Path) -> Locks:
    return locks.of(ledger, tmp_path)


@contextmanager
def another(ledger: Engine, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Let another process hold the lock."""
    command = [sys.executable, "-c", HOLDING, str(ledger.url), str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_one_at_a_time(named: Locks) -> None:
    first, second, other = named.lock("fold"), named.lock("fold"), named.lock("publish")
    assert first.acquire()
    assert not second.acquire()
    assert other.acquire()
    first.release()
    assert second.acquire()
    second.release()
    other.release()


def test_who_has_it_may_take_it_again_where_that_is_meant(named: Locks) -> None:
    outer, inner = named.lock("fold", again=True), named.lock("fold", again=True)
    assert outer.acquire()
    assert inner.acquire()
    inner.release()
    assert not _elsewhere(named)
    outer.release()
    assert _elsewhere(named)


def _elsewhere(named: Locks) -> bool:
    """Tell whether another thread gets it."""
    taken: list[bool] = []

    def attempt() -> None:
        lock = named.lock("fold", again=True)
        taken.append(lock.acquire())
        if taken[0]:
            lock.release()

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return taken[0]


def test_it_is_waited_for_as_long_as_is_said(named: Locks) -> None:
    first, second = named.lock("fold"), named.lock("fold")
    assert first.acquire()
    began = time.monotonic()
    assert not second.acquire(0.1)
    assert time.monotonic() - began >= 0.1
    first.release()
    assert second.acquire(0.1)
    second.release()


def test_a_death_frees_it_and_its_holder_is_named(
    ledger: Engine, tmp_path: Path, named: Locks
) -> None:
    lock = named.lock("fold", again=True)
    with another(ledger, tmp_path) as process:
        assert not lock.acquire()
        assert f"process {process.pid}" in lock.holder()
        process.kill()
        assert lock.acquire(30)
    lock.release()


def test_several_share_where_the_ledger_is_shared(named: Locks) -> None:
    first, second = named.lock("fold", shared=True), named.lock("fold", shared=True)
    alone = named.lock("fold")
    assert first.acquire()
    assert second.acquire() is ledgers.SHARED  # a file keeps out more than it has to
    assert not alone.acquire()
    first.release()
    if ledgers.SHARED:
        assert not alone.acquire()
        second.release()
    assert alone.acquire()
    alone.release()
