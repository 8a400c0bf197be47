import os
import stat
from contextlib import closing
from pathlib import Path
from subprocess import run
from sys import executable

import duckdb
import pytest

from pipelines.core.errors import BuildFailed, StorageFailed, VersionNotFound
from pipelines.warehouse.duckdb_file import DuckDBFiles
from tests.warehouse.versions import accept, add_version, analyst, numbers

# A process that may write no file above a size meets what a full disk does.
FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from pipelines.config.home import Home
from pipelines.core.errors import PartnerSyncError
from pipelines.warehouse.duckdb_file import DuckDBFiles
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def fill_disk(moment):
    if sys.argv[2] == moment:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
files = DuckDBFiles(Home(Path(sys.argv[1])))
build = None
try:
    fill_disk("before begin")
    build = files.begin(files.published(), 2)
    build.db.execute("CREATE TABLE big AS SELECT md5(range::VARCHAR) AS n FROM range(30000)")
    fill_disk("before commit")
    build.commit(lambda reader: None)
except PartnerSyncError as error:
    print(error, error.remedy)
    if build is not None:
        build.abort()
"""


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_version_is_a_read_only_file_that_the_symlink_names(files: DuckDBFiles) -> None:
    assert files.published() is None
    version = add_version(files, 1)
    assert files.home.link.readlink() == Path("versions/v00000001.duckdb")
    assert stat.S_IMODE(version.path.stat().st_mode) == 0o444
    assert files.published() == version
    assert [each.number for each in files.versions()] == [1]
    assert names(files.home.versions) == ["v00000001.duckdb"]


def test_a_version_begins_with_the_rows_of_its_base(files: DuckDBFiles) -> None:
    add_version(files, 1)
    add_version(files, 2)
    assert numbers(files) == [1, 2]
    assert numbers(files, 1) == [1]


def test_a_file_can_be_read_by_duckdb_1_5(files: DuckDBFiles) -> None:
    add_version(files, 1)
    with closing(files.open()) as reader:
        found = reader.execute(
            "SELECT tags['storage_version'], current_setting('TimeZone') FROM duckdb_databases() "
            "WHERE database_name = current_database()"
        ).fetchall()
    assert found == [("v1.5.0+", "UTC")]


@pytest.mark.parametrize("access", ["read", "write"])
def test_an_analyst_who_holds_the_file_open_blocks_nobody_and_keeps_it(
    files: DuckDBFiles, access: str
) -> None:
    first = add_version(files, 1)
    first.path.chmod(0o644)  # an analyst may own the file
    with analyst(files.home.link, access, "SELECT max(n) FROM numbers") as ask:
        second = add_version(files, 2)
        assert ask() == 1  # what was opened stays
        assert numbers(files) == [1, 2]
        assert numbers(files, 1) == [1]  # read by us although another process writes it
        files.drop(1)
        assert ask() == 1
    assert files.published() == second


def test_a_rollback_is_one_swap_and_the_version_after_it_can_have_any_number(
    files: DuckDBFiles,
) -> None:
    first = add_version(files, 1)
    add_version(files, 2)
    files.publish(first)
    assert numbers(files) == [1]
    add_version(files, 3)
    assert numbers(files) == [1, 3]


def test_an_aborted_build_leaves_nothing(files: DuckDBFiles) -> None:
    version = add_version(files, 1)
    build = files.begin(version, 2)
    build.db.execute("CREATE TABLE big AS SELECT range AS n FROM range(100000)")
    build.abort()
    assert names(files.home.versions) == ["v00000001.duckdb"]


def test_a_build_that_is_not_what_was_meant_is_not_finished(files: DuckDBFiles) -> None:
    def refuse(_reader: duckdb.DuckDBPyConnection) -> None:
        raise BuildFailed("other rows")

    build = files.begin(None, 1)
    with pytest.raises(BuildFailed, match="other rows"):
        build.commit(refuse)
    build.abort()
    assert files.versions() == []


def test_the_next_build_deletes_what_killed_processes_left(files: DuckDBFiles) -> None:
    folder = files.home.versions
    for name in (".v00000001.building", ".v00000001.building.wal", ".read-abc"):
        (folder / name).write_bytes(b"x")
    (folder / ".v00000007.duckdb.4194305.spill").mkdir()  # above the largest process id
    own = folder / f".v00000007.duckdb.{os.getpid()}.spill"
    own.mkdir()
    build = files.begin(None, 2)
    build.commit(accept)
    own.rmdir()  # of a process that runs: kept
    assert names(folder) == ["v00000002.duckdb"]


def test_the_published_version_cannot_be_dropped(files: DuckDBFiles) -> None:
    add_version(files, 1)
    with pytest.raises(StorageFailed, match="Version 1 is published"):
        files.drop(1)
    assert numbers(files) == [1]


def test_a_lost_base_is_named_and_never_built_without(files: DuckDBFiles) -> None:
    version = add_version(files, 1)
    version.path.unlink()
    assert files.published() == version
    with pytest.raises(VersionNotFound, match="no file of version 1"):
        files.begin(files.published(), 2)
    with pytest.raises(VersionNotFound, match="does not exist"):
        files.open()
    with pytest.raises(VersionNotFound, match="no file of version 1"):
        files.publish(version)


def test_nothing_published_is_said(files: DuckDBFiles) -> None:
    with pytest.raises(VersionNotFound, match="Nothing is published yet"):
        files.open()


@pytest.mark.parametrize("kind", ["file", "another symlink"])
def test_a_file_in_the_place_of_the_symlink_is_left_alone(files: DuckDBFiles, kind: str) -> None:
    other = files.home.root / "other.duckdb"
    other.write_bytes(b"mine")
    if kind == "file":
        other.rename(files.home.link)
    else:
        files.home.link.symlink_to(other)
    version = files.begin(None, 1).commit(accept)
    with pytest.raises(StorageFailed, match="is not a symlink to a version"):
        files.publish(version)
    assert files.home.link.read_bytes() == b"mine"


def test_a_damaged_file_is_named(files: DuckDBFiles) -> None:
    version = add_version(files, 1)
    version.path.chmod(0o644)
    version.path.write_bytes(b"\0" * 8192)
    with pytest.raises(StorageFailed, match=r"v00000001\.duckdb cannot be opened"):
        files.open()


def test_a_file_that_is_mostly_free_is_rewritten_with_its_comments(files: DuckDBFiles) -> None:
    build = files.begin(None, 1)
    build.db.execute(
        """
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
    )
    sparse = build.commit(accept)
    compacted = files.begin(sparse, 2).commit(accept)
    assert compacted.path.stat().st_size < sparse.path.stat().st_size / 2
    with closing(files.open(2)) as reader:
        assert reader.execute("SELECT count(*), sum(n) FROM numbers").fetchall() == [
            (20002, sum(range(300001, 320000)) + 3)
        ]
        assert reader.execute("SELECT * FROM below(2)").fetchall() == [(0,), (1,)]
        comments = reader.execute(
            "SELECT comment FROM duckdb_tables() UNION ALL SELECT comment FROM duckdb_views() "
            "WHERE NOT internal UNION ALL SELECT comment FROM duckdb_columns() "
            "WHERE comment IS NOT NULL"
        ).fetchall()
    assert sorted(comments) == [("all",), ("one",), ("some",)]


def test_no_statement_fetches_an_extension(files: DuckDBFiles) -> None:
    add_version(files, 1)
    with closing(files.open()) as reader, pytest.raises(duckdb.Error):
        reader.execute("SELECT * FROM read_xlsx('none.xlsx')")


def test_a_full_disk_is_said_and_what_was_published_stays(files: DuckDBFiles) -> None:
    add_version(files, 1)
    for moment, happened in (
        ("before begin", "v00000002.building cannot be written: File too large"),
        ("before commit", "Version 2 could not be finished"),
    ):
        found = run(
            [executable, "-c", FULL_DISK, str(files.home.root), moment],
            capture_output=True,
            text=True,
            check=True,
        )
        assert happened in found.stdout
    assert numbers(files) == [1]
    assert names(files.home.versions) == ["v00000001.duckdb"]
    add_version(files, 2)  # after room was made
    assert numbers(files) == [1, 2]
