"""A fold of a lake whose turn was lost: what another one folded meanwhile is not folded twice.

Here: two folds of one connection at a time, as locks of PostgreSQL allow where it was away. Not
here: the same through the program (test_lake), the rows of one fold (tests/warehouse).
"""

from pathlib import Path

import duckdb
import pytest

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


@pytest.fixture
def home(tmp_path: Path, object_store: str) -> Home:
    made = Home(tmp_path, places.catalog(), f"{object_store}/lake")
    made.prepare()
    return made


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
