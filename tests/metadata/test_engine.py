"""The metadata database: migrations, transactions of several processes, storage that fails."""

import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, insert, inspect, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from pipelines.core.clock import Clock
from pipelines.core.errors import ConfigurationError, StorageFailed
from pipelines.core.files import is_left_over
from pipelines.metadata import migrations
from pipelines.metadata.engine import HEAD, Metadata, _migrate, new_id
from pipelines.metadata.processes import is_alive, this_process
from pipelines.metadata.tables import Base, Decision, Run, VersionRow
from tests.metadata.rows import NOW

CHILD = """
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from pipelines.metadata.engine import Metadata
from pipelines.metadata.tables import VersionRow
metadata = Metadata.open(Path(sys.argv[1]), *sys.argv[3:])
for _ in range(int(sys.argv[2])):
    with metadata.transaction() as session:
        row = session.get(VersionRow, 1)
        if row is None:
            session.add(VersionRow(number=1, base=1, created_at=datetime.now(UTC)))
        else:
            row.base += 1
metadata.close()
"""
KILLED = CHILD.replace(
    "base += 1", "base += 1; _ == 3 and (session.flush(), os.kill(os.getpid(), 9))"
)
HOLD_NAME = """
import sys
from pathlib import Path
from pipelines.metadata.processes import hold_name
held = hold_name(Path(sys.argv[1]), sys.argv[2])
print(flush=True)
sys.stdin.read()
"""
TIMES = 8


def child(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)])


def check_children(children: list[subprocess.Popen[bytes]], file: Path, *url: str) -> None:
    """Wait for a child, and for one that is killed in its fourth transaction."""
    assert [each.wait() for each in children] == [0, -9]
    with closing(Metadata.open(file, *url)) as metadata, metadata.transaction() as session:
        assert session.get_one(VersionRow, 1).base == TIMES + 3


@pytest.mark.long
def test_two_processes_write_one_database_and_one_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "metadata.db"
    check_children([child(code, file, TIMES) for code in (CHILD, KILLED)], file)


# Of each revision, the tables and columns that it adds: the one before has all others.
CREATED = dict.fromkeys(("0008", "0009", "0010", "0012"), ()) | {
    "0007": ("homes",),
    "0011": ("own_sources",),
}
ADDED = {
    "0007": (("versions", "is_early"),),
    "0008": (("versions", "content"),),
    "0010": (("closes", "chosen_connections"),),
    "0011": (),
    "0012": (("books", "sha256"),),
    "0009": tuple(("closes", name) for name in ("state", "approval", "approved_at", "accept_open")),
}


def test_a_database_of_the_revision_before_gets_the_same_tables(metadata: Metadata) -> None:
    """On both engines; what is in the other tables stays."""
    with metadata.transaction() as session:
        session.add(Run(run_id="r", connection="a", trigger="t", started_at=NOW, owner="o"))
    with metadata.engine.begin() as connection:
        expected = _described(connection)
        for table in CREATED[HEAD]:
            connection.execute(text(f"DROP TABLE {table}"))
        for table, column in ADDED[HEAD]:
            connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {column}"))
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{int(HEAD) - 1:04}'"))
    _migrate(metadata.engine)
    with metadata.engine.begin() as connection:
        assert _described(connection) == expected
    with metadata.transaction() as session:
        assert [run.run_id for run in session.query(Run)] == ["r"]


def _described(connection: Connection) -> dict[str, Any]:
    """Return columns, keys and indexes of every table."""
    seen = inspect(connection)
    return {
        table: (
            [(c["name"], str(c["type"]), c["nullable"]) for c in seen.get_columns(table)],
            seen.get_pk_constraint(table)["constrained_columns"],
            sorted((i["name"], i["column_names"]) for i in seen.get_indexes(table)),
        )
        for table in seen.get_table_names()
    }


def test_the_tables_are_those_of_the_newest_revision(metadata: Metadata) -> None:
    assert ScriptDirectory(Path(migrations.__file__).parent).get_heads() == [HEAD]
    with metadata.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert context.get_current_revision() == HEAD
        assert compare_metadata(context, Base.metadata) == []


def test_a_new_database_is_private_and_durable(metadata: Metadata, tmp_path: Path) -> None:
    with metadata.transaction() as session:
        assert session.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert session.execute(text("PRAGMA synchronous")).scalar() == 2
        assert metadata.now(session.connection(), Clock()) == pytest.approx(time.monotonic(), abs=5)
        session.add(VersionRow(number=1, status="", created_at=NOW))
        session.flush()
        files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("*.db*")}
        assert files == dict.fromkeys(("metadata.db", "metadata.db-wal", "metadata.db-shm"), 0o600)


def test_a_transaction_commits_at_its_end_or_rolls_back(metadata: Metadata) -> None:
    row = Decision(decided_at=NOW, person="A", kind="approve", subject="s", reason="r")
    row.details = {"amount": "12345678901234567.89", "nested": [1, None]}
    with metadata.transaction() as session:
        session.add(row)
    assert row.number == 1  # rows are usable afterwards
    rows = [{"number": 1, "status": "", "created_at": NOW, "note": note} for note in ("a", "b")]
    with pytest.raises(IntegrityError), metadata.transaction() as session:
        session.connection().execute(insert(VersionRow).values(rows))
    with metadata.transaction() as session:
        assert session.scalars(select(Decision)).one() == row
        assert session.scalars(select(VersionRow)).all() == []


def test_a_database_that_cannot_be_used_is_named(
    metadata: Metadata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "metadata.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageFailed, match="database is locked"):
            Metadata.open(file, busy_seconds=0)
    with pytest.raises(StorageFailed, match="cannot be written: No such file or directory"):
        Metadata.open(tmp_path / "missing" / "metadata.db")
    monkeypatch.setitem(sys.modules, "psycopg", None)  # as if it were not installed
    for url in ("postgresql://host/database", "not a url"):
        with pytest.raises(ConfigurationError, match="metadata_url is not a PostgreSQL URL"):
            Metadata.open(tmp_path / "metadata.db", url)
    for password in ("p@w", "p/w", "p:/w"):
        url = f"postgresql://user:{password}@127.0.0.1/database"
        with pytest.raises(ConfigurationError, match="more than one @"):
            Metadata.open(tmp_path / "metadata.db", url)
    with metadata.transaction() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ConfigurationError, match="changed by a newer version"):
        Metadata.open(file)


def test_a_damaged_file_is_found(metadata: Metadata, tmp_path: Path) -> None:
    metadata.verify()
    metadata.close()  # writes all to the file
    file = tmp_path / "metadata.db"
    content = bytearray(file.read_bytes())
    content[8192:16384] = bytes(8192)
    file.write_bytes(content)
    with pytest.raises(StorageFailed, match="cannot be used"):
        metadata.verify()


def test_a_process_is_alive_until_it_ends(session: Session) -> None:
    connection = session.connection()
    host, process_id, start = this_process().rsplit(":", 2)
    assert is_alive(connection, f"{host}:{process_id}:{start}")
    assert int(process_id) == os.getpid()
    assert not is_alive(connection, f"{host}:{process_id}:0{start}")
    assert not is_alive(connection, f"other-{host}:{process_id}:{start}")
    zombie = child("")
    while psutil.Process(zombie.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    for _ in range(2):
        assert not is_alive(connection, f"{host}:{zombie.pid}:{start}")
        zombie.wait()


def test_a_process_of_another_container_is_alive_until_it_is_killed(metadata: Metadata) -> None:
    """Its host and ids are its own. It counted as alive for ever, and so did its requests."""
    name = "0a1b2c3d4e5f:7:boot+1.00"
    command = [sys.executable, "-c", HOLD_NAME, str(metadata.locks.folder), name]

    def is_known() -> bool:
        with metadata.transaction() as session:
            return is_alive(session.connection(), name)

    assert not is_known()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        assert is_known()
        process.kill()
        process.wait()
        assert not is_known()


def test_a_process_holds_its_name_while_it_has_the_database_open(tmp_path: Path) -> None:
    def held() -> list[Path]:
        return [*(tmp_path / "locks").glob("*.process")]

    file = tmp_path / "metadata.db"
    with closing(Metadata.open(file)) as first, closing(Metadata.open(file)) as second:
        assert held() == []
        assert first.this_process() == second.this_process() == first.this_process()
        assert len(held()) == 1
        assert not is_left_over(held()[0])
        first.close()
        assert not is_left_over(held()[0])
        kept = second.held_name()
    assert not is_left_over(held()[0])
    del kept
    assert held() == []


def test_identifiers_sort_by_time() -> None:
    assert new_id(NOW).startswith("20261001T120000-")
    assert len({new_id(NOW) for _ in range(100)}) == 100
