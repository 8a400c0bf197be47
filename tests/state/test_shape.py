"""The shape of a ledger: an earlier one is brought up with all it holds, others are refused.

`shape_8.sql` is what `.dump` says of a ledger that the last version without steps wrote.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect, text

from pipelines.errors import ConfigurationError
from pipelines.state import database, journal, judgements, runs, tables
from pipelines.state.shape import FIRST, OWN, VERSION
from pipelines.state.tables import SHAPE
from tests import ledgers

EARLIER = Path(__file__).with_name("shape_8.sql")
EVERY = [
    table
    for metadata in (tables.METADATA, judgements.METADATA, OWN)
    for table in metadata.sorted_tables
]


def old(folder: Path, shape: int = FIRST) -> Path:
    """Write a ledger of the version before."""
    file = folder / "state.sqlite"
    with closing(sqlite3.connect(file)) as written:
        written.executescript(EARLIER.read_text(encoding="utf-8"))
        written.execute(f"PRAGMA user_version = {shape}")
    return file


@pytest.fixture
def upgraded(tmp_path: Path) -> Iterator[Engine]:
    folder = tmp_path / "earlier"
    folder.mkdir()
    old(folder)
    ledger = database.connect(folder)
    yield ledger
    ledger.dispose()


def test_an_earlier_ledger_keeps_what_it_held(upgraded: Engine) -> None:
    (run,) = runs.latest(upgraded, 9)
    assert (run.run, run.outcome, run.requests) == ("run-1", "published", 1)
    (manifest,) = journal.every_manifest(upgraded)
    (page,) = journal.pages(upgraded, manifest.scan)
    assert (manifest.proof.rows, page.limit) == (1190, 500)
    with upgraded.connect() as ledger:
        assert ledger.exec_driver_sql("PRAGMA user_version").scalar() == SHAPE
        assert ledger.execute(VERSION.select()).scalars().all() == [SHAPE]


def test_an_earlier_ledger_is_brought_up_once(tmp_path: Path) -> None:
    old(tmp_path)
    for _ in range(2):
        ledger = database.connect(tmp_path)
        assert len(runs.latest(ledger, 9)) == 1
        ledger.dispose()


def test_what_was_brought_up_and_what_is_new_are_the_same(upgraded: Engine, ledger: Engine) -> None:
    for engine in (upgraded, ledger):
        found = inspect(engine)
        assert {table.name for table in EVERY} == set(found.get_table_names())
        for table in EVERY:
            columns = {(each["name"], each["nullable"]) for each in found.get_columns(table.name)}
            assert columns == {(each.name, each.nullable) for each in table.columns}
            key = found.get_pk_constraint(table.name)["constrained_columns"]
            assert key == [each.name for each in table.primary_key]
            unique = {tuple(each["column_names"]) for each in _unique(found, table.name)}
            indexes = {tuple(each["column_names"]) for each in found.get_indexes(table.name)}
            wanted = {tuple(column.name for column in each.columns) for each in table.indexes}
            assert indexes - unique == wanted


def _unique(found: object, table: str) -> list[dict[str, list[str]]]:
    held: list[dict[str, list[str]]] = getattr(found, "get_unique_constraints")(table)  # noqa: B009
    return held


@pytest.mark.parametrize("shape", [FIRST - 1, SHAPE + 1])
def test_another_ledger_is_refused_and_left_alone(tmp_path: Path, shape: int) -> None:
    file = old(tmp_path, shape)
    with pytest.raises(ConfigurationError, match=rf"ledger {shape}, this version reads {FIRST} to"):
        database.connect(tmp_path)
    with closing(sqlite3.connect(file)) as kept:
        assert kept.execute("PRAGMA user_version").fetchone() == (shape,)
        assert not kept.execute("SELECT * FROM sqlite_master WHERE name = 'scans_of'").fetchall()


def test_a_step_that_fails_leaves_the_ledger_as_it_was(tmp_path: Path) -> None:
    file = old(tmp_path)
    with closing(sqlite3.connect(file)) as spoilt:
        spoilt.execute("CREATE INDEX scans_of ON scans (run)")  # the second of two
    with pytest.raises(Exception, match="scans_of already exists"):
        database.connect(tmp_path)
    with closing(sqlite3.connect(file)) as kept:
        assert kept.execute("PRAGMA user_version").fetchone() == (FIRST,)
        assert not kept.execute("SELECT * FROM sqlite_master WHERE name = 'runs_of'").fetchall()


def test_numbers_are_given_by_the_database(ledger: Engine) -> None:
    with ledger.begin() as rows:
        rows.execute(
            text(
                'INSERT INTO rollbacks (newest, opened, "by", at, reason) '
                "VALUES (1, 1, '', '2026-01-01', '')"
            )
        )
        assert rows.execute(text("SELECT number FROM rollbacks")).scalar_one() == 1
    assert (ledger.dialect.name == "postgresql") == ledgers.SHARED
