"""The work database: one writer at a time; the next one waits and is told."""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from pipelines.errors import WarehouseBusy, WarehouseDamaged
from pipelines.warehouse.database import quoted, tables
from pipelines.warehouse.totals import counted
from tests.warehouse.conftest import Warehouse


def test_a_second_writer_waits_and_says_so(warehouse: Warehouse) -> None:
    order: list[str] = []

    def second() -> None:
        with warehouse.work.writing():
            order.append("second")

    with warehouse.work.writing():
        thread = threading.Thread(target=second)
        thread.start()
        while not warehouse.waits:
            pass
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    who = f"another run (process {os.getpid()})"
    assert warehouse.waits == [f"{who} is writing the warehouse: waiting for it"]


def test_a_file_that_is_open_elsewhere_is_an_error_in_words(warehouse: Warehouse) -> None:
    with warehouse.work.writing():
        pass
    file = warehouse.home.work / "warehouse.duckdb"
    program = (
        "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print('open', flush=True); input()"
    )
    command = [sys.executable, "-c", program, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        words = f"warehouse is open in process {other.pid},"
        with pytest.raises(WarehouseBusy, match=words), warehouse.work.writing():
            pass
        other.kill()


def test_a_damaged_file_says_how_it_is_built_again(warehouse: Warehouse) -> None:
    (warehouse.home.work / "warehouse.duckdb").write_bytes(b"not a database at all" * 500)
    with pytest.raises(WarehouseDamaged, match="Move it away"), warehouse.work.writing():
        pass


@pytest.mark.parametrize(
    "statement",
    [
        "FROM read_csv('{}')",
        "COPY (SELECT 1) TO '{}'",
        "ATTACH '{}'",
        "INSTALL httpfs",
        "SET threads = 2",
        "SET enable_external_access = true",
    ],
)
def test_no_statement_leaves_the_work_database(
    warehouse: Warehouse, tmp_path: Path, statement: str
) -> None:
    refused = (duckdb.PermissionException, duckdb.InvalidInputException)
    with warehouse.work.writing() as writer, pytest.raises(refused):
        writer.execute(statement.format(tmp_path / "other.csv"))


def test_a_long_statement_draws_nothing_into_what_we_print(warehouse: Warehouse) -> None:
    assert warehouse.query("SELECT current_setting('enable_progress_bar')") == [(False,)]


def test_what_does_not_fit_into_memory_still_spills(warehouse: Warehouse) -> None:
    """The rows are twice as large as the memory that DuckDB may use."""
    tight = replace(warehouse.work, memory_limit="24MB")
    rows = "SELECT md5(i::VARCHAR) || md5((i + 1)::VARCHAR) AS text FROM range(500_000) r(i)"
    with tight.writing() as writer:
        first = writer.execute(f"SELECT min(text) FROM ({rows})").fetchone()
        writer.execute(f"CREATE TABLE sorted AS {rows} ORDER BY text")
        assert writer.execute("SELECT text FROM sorted LIMIT 1").fetchone() == first


@pytest.mark.parametrize("name", ["plain", "select", 'a"b', "größe", "a.b"])
def test_any_name_can_be_quoted(name: str) -> None:
    with duckdb.connect() as database:
        database.execute(f"CREATE SCHEMA current; CREATE TABLE {quoted('current', name)} (x INT)")
        database.execute(f"INSERT INTO {quoted('current', name)} VALUES (1)")
        assert counted(database)[0] == {f"current.{name}": 1}


def test_stored_tables_are_those_of_one_database() -> None:
    with duckdb.connect() as database:
        database.execute("ATTACH ':memory:' AS lake; CREATE TABLE lake.main.rows (z INT, a TEXT)")
        database.execute("CREATE TABLE own (b DECIMAL(9, 2)); CREATE VIEW view AS FROM own")
        database.execute("CREATE TEMP TABLE stage (c INT)")
        assert tables(database) == {("main", "own"): {"b": "DECIMAL(9,2)"}}
        within = tables(database, "lake")
    assert [(each, [*kinds.items()]) for each, kinds in within.items()] == [
        (("main", "rows"), [("z", "INTEGER"), ("a", "VARCHAR")])
    ]
