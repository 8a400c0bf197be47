"""A connection's portion of a lake: whatever is done to it, the lake holds what one table would.

Properties, by hypothesis; and two folds of one connection at a time, as locks of PostgreSQL allow
where it was away. Not here: the same through the program (test_lake), what folds do to rows
(tests/warehouse).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.settings import Home
from pipelines.state.locks import Files
from pipelines.warehouse.lake import Lake
from tests.distributed import places

CONNECTION = "acme"
TABLES = """
CREATE SCHEMA IF NOT EXISTS meta; CREATE SCHEMA IF NOT EXISTS current;
CREATE TABLE IF NOT EXISTS meta.folds (
    connection VARCHAR, stream VARCHAR, manifest VARCHAR, folded_at TIMESTAMPTZ
);
CREATE TABLE IF NOT EXISTS current.things (_connection VARCHAR, id BIGINT);
"""
KINDS = ("INTEGER", "BIGINT", "DECIMAL(20,2)", "VARCHAR")


@dataclass(frozen=True)
class Change:
    """What one fold does to the rows of one connection."""

    connection: str
    more: int  # records that are new
    kind: str  # the type that the value needs; a type never becomes narrower
    column: str  # one that may be new
    gone: int  # one record in so many, none where 0
    changed: int

    def apply(self, database: duckdb.DuckDBPyConnection, number: int) -> None:
        """Do it to plain tables; keys of one fold are not those of another."""
        database.execute(
            "CREATE SCHEMA IF NOT EXISTS current; CREATE TABLE IF NOT EXISTS current.things "
            f"(_connection VARCHAR, id BIGINT, value {self.kind}); "
            f"ALTER TABLE current.things ADD COLUMN IF NOT EXISTS {self.column} VARCHAR"
        )
        kind = columns(database, "things")["value"]
        if KINDS.index(self.kind) > KINDS.index(kind):
            database.execute(f"ALTER TABLE current.things ALTER value SET DATA TYPE {self.kind}")
        own = f"_connection = '{self.connection}'"
        if self.gone:
            database.execute(f"DELETE FROM current.things WHERE {own} AND id % {self.gone} = 0")
        if self.changed:
            told = f"{self.column} = 'fold {number}'"
            database.execute(
                f"UPDATE current.things SET {told} WHERE {own} AND id % {self.changed} = 0"
            )
        rows = f"SELECT '{self.connection}', {number * 10} + i, i FROM range({self.more}) r(i)"
        database.execute(f"INSERT INTO current.things (_connection, id, value) {rows}")


CHANGES = st.lists(
    st.builds(
        Change,
        connection=st.sampled_from(["acme", "bolt", "acme-2"]),
        more=st.integers(0, 9),
        kind=st.sampled_from(KINDS),
        column=st.sampled_from(["note", "other"]),
        gone=st.integers(0, 3),
        changed=st.integers(0, 3),
    ),
    min_size=2,
    max_size=6,
)


def columns(database: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """Return the types of a table's columns, by name."""
    described = database.execute(f"DESCRIBE current.{table}").fetchall()
    return {name: kind for name, kind, *_rest in sorted(described)}


def content(database: duckdb.DuckDBPyConnection) -> tuple[object, ...]:
    """Return columns and rows, whatever their order."""
    there = columns(database, "things")
    rows = database.execute(f"SELECT {', '.join(there)} FROM current.things ORDER BY ALL")
    return there, rows.fetchall()


@contextmanager
def fresh(store: str) -> Iterator[Lake]:
    """Yield a lake that holds nothing."""
    with TemporaryDirectory() as folder:
        home = places.lake(Path(folder), store)
        yield Lake(home, "200MB", lambda _words: None, Files(home.state))


@given(changes=CHANGES)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_folds_of_portions_make_what_folds_of_one_table_would(
    object_store: str, changes: list[Change]
) -> None:
    with fresh(object_store) as lake, duckdb.connect() as plain:
        for number, change in enumerate(changes):
            change.apply(plain, number)
            lake.fold(change.connection, partial(change.apply, number=number))
            with lake.connected() as database:
                assert content(database) == content(plain)


@pytest.fixture
def home(tmp_path: Path, object_store: str) -> Home:
    return places.lake(tmp_path, object_store)


def lake(home: Home, turns: str) -> Lake:
    """Return the lake as somebody sees it whose turns nobody else knows of."""
    folder = home.root / turns
    folder.mkdir()
    return Lake(home, "200MB", lambda _words: None, Files(folder))


def fold(database: duckdb.DuckDBPyConnection, manifest: str) -> bool:
    """Fold a manifest of two records, unless that was done; tell whether it was to be done."""
    database.execute(TABLES)
    done = database.execute("SELECT count(*) FROM meta.folds WHERE manifest = ?", [manifest])
    if done.fetchall() != [(0,)]:
        return False
    database.execute("INSERT INTO current.things VALUES (?, 1), (?, 2)", [CONNECTION] * 2)
    folded = [CONNECTION, "things", manifest]
    database.execute("INSERT INTO meta.folds VALUES (?, ?, ?, now())", folded)
    return True


def test_who_lost_his_turn_does_not_write_what_another_one_folded(home: Home) -> None:
    mine, others = lake(home, "mine"), lake(home, "others")
    mine.fold(CONNECTION, lambda database: database.execute(TABLES))
    tried = list[bool]()

    def act(database: duckdb.DuckDBPyConnection) -> None:
        tried.append(fold(database, "acme/things/1"))
        if len(tried) == 1:
            assert others.fold(CONNECTION, lambda theirs: fold(theirs, "acme/things/1"))

    mine.fold(CONNECTION, act)

    assert tried == [True, False]
    with mine.connected() as database:
        found = database.execute("SELECT id FROM current.things ORDER BY id").fetchall()
    assert found == [(1,), (2,)]
