"""A file's full disk and a process that hangs: said in words, and nothing is half written.

PostgreSQL's are in tests/distributed.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from pipelines.errors import StorageFailed
from pipelines.state.desk import Busy
from pipelines.state.slots import Slots
from tests import ledgers
from tests.virtual import EPOCH

FILL = """
INSERT INTO rollbacks (newest, opened, by, at, reason)
VALUES (1, 1, '', '2026-01-01', hex(zeroblob(1000000)))
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Engine]:
    engine = ledgers.in_file(tmp_path)
    yield engine
    engine.dispose()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the state database as a process that was stopped within a transaction."""
    with closing(sqlite3.connect(folder / "state.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_a_full_disk_is_said_in_words(ledger: Engine) -> None:
    with ledger.begin() as rows:
        rows.execute(text("PRAGMA max_page_count = 1"))
        with pytest.raises(StorageFailed, match=r"full.*run sync again: it goes on"):
            rows.execute(text(FILL))
    with ledger.begin() as rows:
        assert rows.execute(text("SELECT count(*) FROM rollbacks")).scalar_one() == 0


def test_a_process_that_hangs_is_said_in_words(tmp_path: Path, ledger: Engine) -> None:
    with ledger.begin() as rows:
        rows.execute(text("PRAGMA busy_timeout = 5"))
    with held(tmp_path), pytest.raises(StorageFailed, match="locked"), ledger.begin() as rows:
        rows.execute(text(FILL))


def test_a_budget_is_left_though_the_ledger_is_held(tmp_path: Path, ledger: Engine) -> None:
    rows = Slots(ledger, "actor")
    with rows.transaction():
        rows.queue("nightly", 1.0)
    with held(tmp_path):
        with pytest.raises(Busy), rows.transaction():
            rows.take(1.0)
        rows.close()
    heir = Slots(ledger, "actor")
    with heir.transaction():
        (gone,) = heir.tickets()
        assert heir.bury(gone.owner, 2.0)
        assert heir.account(2.0, EPOCH).sent_at == 0.0
    heir.close()
