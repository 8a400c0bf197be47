import shutil
import stat
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from pipelines.config.home import Home
from pipelines.core.errors import PartnerSyncError, StorageFailed
from pipelines.warehouse.duckdb_file import Written
from pipelines.warehouse.memory_limit import MemoryLimit
from pipelines.warehouse.version_files import Warehouse
from tests.warehouse.versions import add_version, numbers


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(Home(tmp_path / "home").prepare())


def names(warehouse: Warehouse) -> list[str]:
    return sorted(file.name for file in warehouse.home.versions.iterdir())


def test_versions_are_read_only_files_and_a_symlink_names_one(warehouse: Warehouse) -> None:
    assert warehouse.published() is None
    with pytest.raises(PartnerSyncError, match="Nothing is published yet"), warehouse.open():
        pass
    first = add_version(warehouse, 1)
    assert warehouse.home.link.readlink() == Path("versions/v00000001.duckdb")
    assert stat.S_IMODE(first.path.stat().st_mode) == 0o444
    second = add_version(warehouse, 2)
    assert (numbers(warehouse), numbers(warehouse, 1)) == ([1, 2], [1])
    warehouse.link(first)  # a rollback; the next version can have any number
    assert (warehouse.published(), numbers(warehouse)) == (first, [1])
    add_version(warehouse, 4)
    assert numbers(warehouse) == [1, 4]
    warehouse.drop(2)
    first.path.with_name("v1.duckdb").touch()  # somebody's own
    assert [version.number for version in warehouse.versions()] == [1, 4]
    assert not second.path.exists()


def test_a_file_that_is_open_with_other_settings_is_read(warehouse: Warehouse) -> None:
    version = add_version(warehouse, 1)
    with closing(duckdb.connect(version.path, read_only=True, config={"threads": 2})):
        assert numbers(warehouse) == [1]
        assert numbers(replace(warehouse, memory_limit=MemoryLimit("256MB"))) == [1]
    assert names(warehouse) == ["v00000001.duckdb"]


def test_a_build_that_is_not_what_was_written_is_not_finished(warehouse: Warehouse) -> None:
    version = add_version(warehouse, 1)
    other_rows = r"differs from what was written, in the rows of main\.numbers"
    with warehouse.begin(version, 2) as db:
        db.execute("UPDATE numbers SET n = 7")
        copy = shutil.copyfile(version.path, version.path.with_name("copy"))
        copy.rename(version.path.with_name(".v00000002.building"))
        with pytest.raises(PartnerSyncError, match=other_rows):
            warehouse.commit(db, 2)
    assert warehouse.versions() == [version]


OF_A = "amount = 7 WHERE _connection = 'a'"
OF_B = "amount = 7 WHERE _connection = 'b'"


@pytest.mark.parametrize(
    ("written", "update", "differs"),
    [
        (None, OF_A, True),
        (Written({"n"}, None), OF_B, True),
        (Written({"n"}, {"a"}), OF_A, True),
        (Written({"n"}, {"a"}), OF_B, False),
        (Written({"n"}, {"a"}), "_key = 'other' WHERE _connection = 'b'", True),
        (Written(set(), None), OF_A, False),
    ],
)
def test_tables_of_history_are_compared_if_they_were_written(
    warehouse: Warehouse, written: Written | None, update: str, *, differs: bool
) -> None:
    """Amounts are compared of the connections whose rows were written, all else of every one."""
    rows = """
        CREATE SCHEMA history;
        CREATE TABLE history.n (_connection VARCHAR, _key VARCHAR, amount DECIMAL(38, 2));
        INSERT INTO history.n VALUES ('a', 'x', 1), ('b', 'x', 2);
    """
    with warehouse.begin(None, 1) as db:
        db.execute(rows)
        base = warehouse.commit(db, 1)
    with warehouse.begin(base, 2) as db:
        db.execute(f"UPDATE history.n SET {update}")
        copy = shutil.copyfile(base.path, base.path.with_name("copy"))
        copy.rename(base.path.with_name(".v00000002.building"))
        with pytest.raises(PartnerSyncError, match=r"history\.n") if differs else nullcontext():
            warehouse.commit(db, 2, written=written)


@pytest.mark.parametrize("kind", ["file", "another symlink"])
def test_a_file_in_the_place_of_the_symlink_is_left_alone(warehouse: Warehouse, kind: str) -> None:
    other = warehouse.home.root / "other.duckdb"
    other.write_bytes(b"mine")
    if kind == "file":
        other.rename(warehouse.home.link)
    else:
        warehouse.home.link.symlink_to(other)
    with pytest.raises(StorageFailed, match="is not a symlink to a version"):
        add_version(warehouse, 1)
    assert warehouse.home.link.read_bytes() == b"mine"


def test_a_file_that_is_mostly_free_is_rewritten_with_its_comments(warehouse: Warehouse) -> None:
    statements = """
        CREATE TABLE numbers (n INTEGER, noise UBIGINT[]);
        INSERT INTO numbers
        SELECT range, [hash(range, salt) FOR salt IN [1, 2, 3, 4, 5, 6, 7, 8]] FROM range(320000);
        CREATE VIEW few AS SELECT numbers.n FROM numbers WHERE numbers.n < 3;
        COMMENT ON TABLE numbers IS 'all';
        COMMENT ON COLUMN numbers.n IS 'one';
        COMMENT ON VIEW few IS 'some';
        CREATE MACRO below(x) AS TABLE SELECT numbers.n FROM numbers WHERE numbers.n < x;
        CHECKPOINT;
        DELETE FROM numbers WHERE numbers.n BETWEEN 3 AND 300000;
        CHECKPOINT;
    """
    with warehouse.begin(None, 1) as db:
        db.execute(statements)
        sparse = warehouse.home.versions.joinpath(".v00000001.building").stat().st_size
        version = warehouse.commit(db, 1)
    assert version.path.stat().st_size < sparse / 2
    with warehouse.open(1) as reader:
        totals = reader.execute("SELECT count(*), sum(n) FROM numbers").fetchall()
        assert totals == [(20002, sum(range(300001, 320000)) + 3)]
        stored = "SELECT tags['storage_version'], current_setting('TimeZone') "
        stored += "FROM duckdb_databases() WHERE NOT internal"
        assert reader.execute(stored).fetchall() == [("v1.5.0+", "UTC")]
        with pytest.raises(duckdb.Error):  # no statement fetches an extension
            reader.execute("SELECT * FROM read_xlsx('none.xlsx')")
        assert reader.execute("SELECT * FROM below(2)").fetchall() == [(0,), (1,)]
        comments = reader.execute(
            "SELECT comment FROM (SELECT comment FROM duckdb_tables() UNION ALL "
            "SELECT comment FROM duckdb_views() UNION ALL SELECT comment FROM duckdb_columns()) "
            "WHERE comment IS NOT NULL"
        ).fetchall()
    assert sorted(comments) == [("all",), ("one",), ("some",)]
