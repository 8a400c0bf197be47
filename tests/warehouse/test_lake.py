"""A lake's databases on one machine: each spills into a folder of its own, and none for ever.

Here: what needs neither PostgreSQL nor an object store. Not here: the lake itself
(tests/distributed).
"""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from pipelines.settings import Home
from pipelines.warehouse import lake
from pipelines.warehouse.database import Work
from pipelines.warehouse.rebuild import sweep_old

ROWS = "SELECT md5((i * {0})::VARCHAR) || md5((i + {0})::VARCHAR) AS text FROM range(300_000) r(i)"
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def home(folder: Path) -> Home:
    made = Home(folder)
    made.prepare()
    return made


def sums(database: duckdb.DuckDBPyConnection, rows: str) -> list[tuple[object, ...]]:
    return database.execute(f"SELECT count(*), bit_xor(hash(text)) FROM {rows}").fetchall()


def test_what_one_database_spills_another_does_not_write_over(tmp_path: Path) -> None:
    """The rows of each are twice as large as the memory that it may use."""
    place = home(tmp_path)
    with lake.bare(place, "16MB") as first, lake.bare(place, "16MB") as second:
        both = {first: ROWS.format(3), second: ROWS.format(7)}
        for database, rows in both.items():
            database.execute(f"CREATE TEMP TABLE kept AS {rows}")
        assert len(list(place.work.glob("spill-*"))) == len(both)
        found = [sums(database, "kept") for database in both]
    with duckdb.connect() as plain:
        assert found == [sums(plain, f"({rows})") for rows in both.values()]
    assert list(place.work.iterdir()) == []


def test_what_was_killed_on_this_machine_goes_a_day_later(tmp_path: Path) -> None:
    place = home(tmp_path)
    for name, age in (("old", timedelta(days=2)), ("new", timedelta(hours=2))):
        folder, file = place.work / f"spill-{name}", place.work / f"fold-{name}.duckdb"
        folder.mkdir()
        (folder / "duckdb_temp_storage_32K-0.tmp").write_bytes(b"rows")
        file.write_bytes(b"rows")
        for left in (folder, file):
            os.utime(left, ((NOW - age).timestamp(),) * 2)
    sweep_old(Work(place, "64MB", lambda _words: None), NOW)
    assert {each.name for each in place.work.iterdir()} == {"spill-new", "fold-new.duckdb"}
