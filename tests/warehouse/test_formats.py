"""Formats of version files: each step, all of them in order or none, and files of a newer one."""

from pathlib import Path

import duckdb
import pytest

from pipelines.config.home import Home
from pipelines.core.errors import NewerFormat, PartnerSyncError, UpgradeFailed
from pipelines.warehouse import formats
from pipelines.warehouse.version_files import Warehouse
from tests.warehouse.versions import add_version, numbers


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(Home(tmp_path / "home").prepare())


def test_format_2_says_its_number() -> None:
    with duckdb.connect() as db:
        db.execute("CREATE SCHEMA meta; CREATE TABLE meta.loads (scan_id VARCHAR)")
        assert formats.read_format(db) == 1
        formats.add_format(db)
        assert db.execute("SELECT * FROM meta.format").fetchall() == []


def test_format_3_has_no_number_of_readings_for_earlier_loads() -> None:
    with duckdb.connect() as db:
        formats.add_chains(db)  # nothing was ever loaded
        db.execute("CREATE SCHEMA meta; CREATE TABLE meta.loads AS SELECT 'a' AS scan_id")
        formats.add_chains(db)
        assert db.execute("SELECT scan_id, chains FROM meta.loads").fetchall() == [("a", None)]


def test_format_4_has_no_candidates_for_columns_that_other_rules_decided() -> None:
    with duckdb.connect() as db:
        formats.add_types(db)  # nothing was ever loaded
        db.execute("CREATE SCHEMA meta; CREATE TABLE meta.columns AS SELECT 'a' AS stream")
        formats.add_types(db)
        found = db.execute("SELECT stream, candidates, declared FROM meta.columns").fetchall()
        assert found == [("a", None, None)]


def test_format_6_knows_of_no_connection_when_its_rows_were_written() -> None:
    with duckdb.connect() as db:
        formats.add_connections(db)
        formats.add_connections(db)
        assert db.execute("SELECT connection, version FROM meta.connections").fetchall() == []


def double(db: duckdb.DuckDBPyConnection) -> None:
    db.execute("UPDATE numbers SET n = 2 * n")


def fail(db: duckdb.DuckDBPyConnection) -> None:
    db.execute("UPDATE numbers SET n = 0; SELECT no_such_column FROM numbers")


def test_a_build_takes_the_steps_that_its_base_lacks(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = add_version(warehouse, 1)
    with warehouse.open() as db:
        assert formats.read_format(db) == formats.newest()
    before = first.path.read_bytes()
    monkeypatch.setattr(formats, "STEPS", (*formats.STEPS, double, double))
    add_version(warehouse, 2)
    assert numbers(warehouse, 1) == [1]
    assert numbers(warehouse) == [2, 4]
    add_version(warehouse, 3)
    assert numbers(warehouse) == [2, 3, 4]  # not doubled again
    assert first.path.read_bytes() == before


def test_a_step_that_fails_leaves_the_tables_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with duckdb.connect() as db:
        db.execute("CREATE TABLE numbers (n INTEGER); INSERT INTO numbers VALUES (1)")
        monkeypatch.setattr(formats, "STEPS", (*formats.STEPS, double, fail))
        expected = f"format 1 cannot be upgraded to format {formats.newest()}"
        with pytest.raises(UpgradeFailed, match=expected):
            formats.upgrade(db)
        assert formats.read_format(db) == 1
        assert db.execute("SELECT n FROM numbers").fetchall() == [(1,)]


def test_a_version_of_a_newer_format_is_refused_and_left_as_it_is(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(formats, "STEPS", (*formats.STEPS, double))
        version = add_version(warehouse, 1)
    before = version.path.read_bytes()
    said = f"has format {formats.newest() + 1}, and this partner-sync reads formats up to"
    with pytest.raises(NewerFormat, match=said), warehouse.open():
        pass
    assert version.path.read_bytes() == before


def test_what_an_older_format_lacks_is_named_with_the_command(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_version(warehouse, 1)
    with pytest.raises(duckdb.CatalogException), warehouse.open() as db:
        db.execute("SELECT * FROM later")
    monkeypatch.setattr(formats, "STEPS", (*formats.STEPS, double))
    lacking = pytest.raises(PartnerSyncError, match="lacks what is read here")
    with lacking as caught, warehouse.open() as db:
        db.execute("SELECT * FROM later")
    assert "partner-sync versions build" in caught.value.remedy
