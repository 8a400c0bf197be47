"""A ledger in PostgreSQL: away, back, of somebody else, made by several at once."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import Engine, create_engine, insert, text

from pipelines.errors import ConfigurationError, StorageFailed
from pipelines.state import database, locks, postgresql, runs
from pipelines.state.runs import Call
from pipelines.state.tables import REQUESTS, SHAPE
from tests.distributed.servers import PostgreSQL
from tests.virtual import EPOCH

NOWHERE = Path()  # a shared ledger needs no folder
CALL = Call("usage", "GET", "/v2/usage", "", EPOCH, 0.0, 0.1, 200, 4, None, None)
AWAY = r"state database cannot be used.*What was read until now is kept.*run sync again: it goes on"
HELD = """
SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database
WHERE locktype = 'advisory' AND datname = current_database()
"""
WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'advisory'"
MAKING = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from pipelines.state import database, runs

ledger = database.connect(Path(), sys.argv[1])
at = datetime(2026, 1, 1, tzinfo=UTC)
runs.begin(ledger, "shared", "default", at.date(), at)
"""


@pytest.fixture
def server() -> Iterator[PostgreSQL]:
    """Begin a server of the test's own, which it may kill; pytest's folders are root's alone."""
    with TemporaryDirectory(prefix="postgresql-") as folder:
        Path(folder).chmod(0o711)
        made = PostgreSQL(Path(folder) / "data")
        made.begin()
        yield made
        made.end()


@pytest.fixture
def ledger(postgres: Callable[[], str]) -> Iterator[Engine]:
    engine = database.connect(NOWHERE, postgres())
    yield engine
    engine.dispose()


def test_a_server_that_is_killed_is_said_and_its_return_is_noticed(server: PostgreSQL) -> None:
    engine = database.connect(NOWHERE, server.database("ledger"))
    runs.record(engine, "run-1", CALL)
    with engine.connect() as open_:
        open_.execute(text("SELECT 1"))
        server.kill()
        with pytest.raises(StorageFailed, match=AWAY):
            open_.execute(text("SELECT 1"))
    with pytest.raises(StorageFailed, match=AWAY):
        runs.record(engine, "run-1", CALL)
    server.begin()
    runs.record(engine, "run-1", CALL)
    assert runs.efforts(engine, "run-1")["usage"].requests == 2
    engine.dispose()


def test_a_lock_is_free_when_its_server_was_killed(server: PostgreSQL) -> None:
    named = locks.of(postgresql.engine(server.database("ledger")), NOWHERE)
    first, second = named.lock("fold"), named.lock("fold")
    assert first.acquire()
    server.kill()
    with pytest.raises(StorageFailed, match=AWAY):
        second.acquire()
    server.begin()
    assert second.acquire()
    first.release()
    assert not named.lock("fold").acquire()
    second.release()


def test_a_server_that_is_not_there_is_said_in_words() -> None:
    with pytest.raises(StorageFailed, match=AWAY):
        database.connect(NOWHERE, "postgresql+psycopg2://nobody@127.0.0.1:1/ledger")


def test_a_database_of_somebody_else_is_left_alone(postgres: Callable[[], str]) -> None:
    url = postgres()
    with create_engine(url).begin() as others:
        others.execute(text("CREATE TABLE runs (number integer)"))
    with pytest.raises(ConfigurationError, match="holds the tables of something else"):
        database.connect(NOWHERE, url)
    with create_engine(url).connect() as others:
        assert (
            others.execute(
                text("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
            ).scalar_one()
            == 1
        )


def test_an_earlier_ledger_is_brought_up_and_a_newer_one_refused(ledger: Engine) -> None:
    url = ledger.url.render_as_string()
    with ledger.begin() as rows:
        rows.execute(text("DROP INDEX runs_of; DROP INDEX scans_of; DROP INDEX manifests_named"))
        rows.execute(text("UPDATE ledger_version SET shape = 8"))
    database.connect(NOWHERE, url).dispose()
    with ledger.begin() as rows:
        named = "indexname ~ '^(run|scan|manifest)s_(of|named)$'"
        found = rows.execute(text(f"SELECT count(*) FROM pg_indexes WHERE {named}"))
        assert found.scalar_one() == 3
        assert rows.execute(text("SELECT shape FROM ledger_version")).scalar_one() == SHAPE
        rows.execute(text(f"UPDATE ledger_version SET shape = {SHAPE + 1}"))
    with pytest.raises(ConfigurationError, match=f"ledger {SHAPE + 1}, this version reads 8 to"):
        database.connect(NOWHERE, url)


def test_several_processes_make_one_ledger(postgres: Callable[[], str]) -> None:
    url = postgres()
    made = [
        subprocess.Popen([sys.executable, "-c", MAKING, url], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [process.communicate(timeout=60)[1] for process in made] == [""] * 3
    engine = database.connect(NOWHERE, url)
    assert [run.run for run in runs.latest(engine, 9)] == ["shared"]
    engine.dispose()


def test_a_request_that_is_being_recorded_is_waited_for(ledger: Engine) -> None:
    """Its number is taken before it is committed; who copied past it would never see it."""
    copied: list[int] = []

    def copy() -> None:
        copied.extend(number for some in runs.calls(ledger, 0, 10) for number, _, _ in some)

    copying = threading.Thread(target=copy)
    with ledger.begin() as slow:
        slow.execute(insert(REQUESTS), vars(CALL) | {"run": "slow"})
        runs.record(ledger, "quick", CALL)
        copying.start()
        copying.join(0.3)
        assert copying.is_alive()
    copying.join(30)
    assert copied == [1, 2]


def session(engine: Engine) -> int:
    """Return the session of PostgreSQL that the next connection is."""
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def test_who_comes_next_has_the_connections_of_who_left(postgres: Callable[[], str]) -> None:
    url = postgres()
    ledger = database.connect(NOWHERE, url)
    first = session(ledger)
    database.leave(ledger)
    assert session(database.connect(NOWHERE, url)) == first


def test_a_lock_that_was_waited_for_leaves_nothing_behind(ledger: Engine) -> None:
    named = locks.of(ledger, NOWHERE)
    first, second = named.lock("fold"), named.lock("fold")
    assert first.acquire()
    assert not second.acquire(0.1)
    first.release()
    with ledger.connect() as one, ledger.connect() as other:  # those that both of them had
        for each in (one, other):
            assert each.execute(text("SHOW lock_timeout")).scalar_one() == "0"
        assert one.execute(text(HELD)).scalar_one() == 0


def test_a_lock_that_is_forgotten_is_nobodys(ledger: Engine) -> None:
    """Between two statements an interrupt leaves it so: nobody has a name for it any more."""
    forgotten = locks.of(ledger, NOWHERE).lock("fold")
    assert forgotten.acquire()
    del forgotten
    gc.collect()
    with ledger.connect() as looking:
        assert looking.execute(text(HELD)).scalar_one() == 0


def test_a_lock_that_is_interrupted_is_nobodys(ledger: Engine) -> None:
    named = locks.of(ledger, NOWHERE)
    first, second = named.lock("fold"), named.lock("fold")
    assert first.acquire()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    freed = threading.Timer(0.4, first.release)  # so that the wait ends with the lock in hand
    freed.start()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            second.acquire(30)
    finally:
        signal.signal(signal.SIGALRM, before)
    freed.join(30)
    with ledger.connect() as looking:
        assert looking.execute(text(HELD)).scalar_one() == 0


@pytest.mark.parametrize("patience", [1.0, 30.0], ids=["given up", "asked again"])
def test_a_lock_that_comes_as_its_wait_ends_is_let_go(ledger: Engine, patience: float) -> None:
    """PostgreSQL gives it to a process that is told next that its time is over."""
    named = locks.of(ledger, NOWHERE)
    first, second = named.lock("fold"), named.lock("fold")
    assert first.acquire()
    waiting = threading.Thread(target=second.acquire, args=[patience])
    waiting.start()
    with ledger.connect() as looking:
        while (process := looking.execute(text(WAITING)).scalar()) is None:
            looking.rollback()  # else it would see the same for ever
        os.kill(process, signal.SIGSTOP)
        first.release()
        time.sleep(1.5 * locks.SLICE / 1000)
        os.kill(process, signal.SIGCONT)
        waiting.join(30)
        second.release()
        assert looking.execute(text(HELD)).scalar_one() == 0


def test_shared_locks_do_not_starve_one_that_wants_to_be_alone(ledger: Engine) -> None:
    named = locks.of(ledger, NOWHERE)
    first, alone = named.lock("fold", shared=True), named.lock("fold")
    assert first.acquire()
    waiting = threading.Thread(target=alone.acquire, args=[30])
    waiting.start()
    while (another := named.lock("fold", shared=True)).acquire():
        another.release()  # until the other has queued
    first.release()
    waiting.join(30)
    assert not named.lock("fold", shared=True).acquire()
    alone.release()
