"""The ledger's database: durable, open to several processes, wherever it lies."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect

from pipelines.errors import ConfigurationError
from pipelines.state import database, judgements, runs, tables
from pipelines.state.shape import OWN
from pipelines.state.tables import SHAPE
from tests import ledgers
from tests.virtual import EPOCH

# synchronous 2 is FULL: a commit is on the disk when it returns.
PRAGMAS = {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 30_000}
WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from pipelines.errors import ConfigurationError
from pipelines.state import database, runs
from pipelines.state.runs import Call

name, count = sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
ledger = database.connect(Path(sys.argv[1]))
at = datetime(2026, 1, 1, tzinfo=UTC)
runs.begin(ledger, "shared", "default", at.date(), at)
for number in range(count):
    call = Call(name, "GET", "/", str(number), at, 0.5, 0.1, 200, None, None, None)
    runs.record(ledger, "shared", call)
"""


@pytest.mark.parametrize(("name", "value"), PRAGMAS.items())
def test_commits_are_durable_and_readers_undisturbed(
    tmp_path: Path, name: str, value: object
) -> None:
    ledger = ledgers.in_file(tmp_path)
    with ledger.connect() as first, ledger.connect() as second:
        for connection in (first, second):
            assert connection.exec_driver_sql(f"PRAGMA {name}").scalar() == value


def test_a_reader_of_a_file_sees_one_state_while_another_writes(tmp_path: Path) -> None:
    ledger = ledgers.in_file(tmp_path)
    count = "SELECT count(*) FROM runs"
    with ledger.connect() as reader:
        before = reader.exec_driver_sql(count).scalar()
        runs.begin(ledger, "r", "default", EPOCH.date(), EPOCH)
        assert reader.exec_driver_sql(count).scalar() == before == 0
    with ledger.connect() as reader:
        assert reader.exec_driver_sql(count).scalar() == 1


def test_what_is_rolled_back_is_gone(ledger: Engine) -> None:
    with ledger.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE scratch (x integer)")
        connection.rollback()
    assert "scratch" not in inspect(ledger).get_table_names()


def test_a_ledger_is_opened_again_with_what_it_held(tmp_path: Path) -> None:
    url = ledgers.address()
    for run in ("first", "second"):
        ledger = database.connect(tmp_path, url)
        runs.begin(ledger, run, "default", EPOCH.date(), EPOCH)
        with ledger.connect() as connection:
            held = connection.exec_driver_sql("SELECT run FROM runs ORDER BY run").scalars().all()
        ledger.dispose()
    assert held == ["first", "second"]
    tables_made = {*tables.METADATA.tables, *judgements.METADATA.tables, *OWN.tables}
    assert tables_made == set(inspect(ledger).get_table_names())
    ledger.dispose()


@pytest.mark.parametrize("name", ["a?mode=memory", "a%20b", "a#b", "a b", "ä"])
def test_the_folder_may_be_called_anything(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    database.connect(folder).dispose()
    assert (folder / "state.sqlite").is_file()


def test_processes_make_a_new_ledger_and_write_it_at_once(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), f"writer {number}", "60"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert errors == ["", "", ""]
    ledger = database.connect(tmp_path)
    efforts = runs.efforts(ledger, "shared")
    ledger.dispose()
    assert {stream: effort.requests for stream, effort in efforts.items()} == {
        f"writer {number}": 60 for number in range(3)
    }


def test_a_ledger_of_another_version_is_refused_in_words(tmp_path: Path) -> None:
    database.connect(tmp_path).dispose()
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as file:
        file.execute(f"PRAGMA user_version = {SHAPE + 1}")
    with pytest.raises(
        ConfigurationError, match=rf"ledger {SHAPE + 1}, this version reads 8 to {SHAPE}"
    ):
        database.connect(tmp_path)
