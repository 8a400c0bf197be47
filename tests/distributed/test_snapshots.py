"""The versions of a lake whose tables have many small files; on PostgreSQL and an object store.

Here: that files are merged, and no version reads otherwise. Not here: folding and publishing
through the program (test_lake).
"""

from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from s3fs import S3FileSystem

from pipelines.errors import PublicationFailed, StorageFailed
from pipelines.settings import Home
from pipelines.settings.shared import catalogue
from pipelines.state.locks import Files
from pipelines.state.versions import Version
from pipelines.warehouse import published
from pipelines.warehouse.lake import PUBLISHED, Lake, attach, bare
from pipelines.warehouse.snapshots import Snapshots, opened
from tests.distributed import places
from tests.distributed.servers import ObjectStore

NIGHTS = 12
MOST = 4  # files of a table
# The last one: each row in its place, by which a fold deletes what it took out of the lake before.
SUMS = (
    "SELECT count(*), sum(number), count(DISTINCT rowid), bit_xor(hash(rowid, number, night)) "
    "FROM things"
)


@pytest.fixture
def lake(tmp_path: Path, object_store: str) -> Lake:
    home = places.lake(tmp_path, object_store)
    return Lake(home, "200MB", lambda _words: None, Files(home.state))


def version(number: int) -> Version:
    return Version(number, "run", f"v{number}", {}, {}, datetime.now(UTC))


def nights(lake: Lake) -> tuple[Snapshots, dict[int, tuple[object, ...]]]:
    """Publish a night of ten new rows and a deleted one again and again; return what each held."""
    kept, held = Snapshots(lake, MOST), dict[int, tuple[object, ...]]()
    with lake.connected() as database:
        database.execute("CREATE TABLE things (number BIGINT, night BIGINT)")
        for night in range(1, NIGHTS + 1):
            database.execute(
                f"INSERT INTO things SELECT range, {night} FROM range({night}, {night}+10)"
            )
            database.execute(f"DELETE FROM things WHERE night = {night} AND number % 10 = 0")
            [held[night]] = database.execute(SUMS).fetchall()
            kept.point(kept.put(version(night)))
            kept.tidy()
            kept.keep_only(kept.numbers[-3:])
    return kept, held


def catalog(lake: Lake) -> str:
    """Return the name of the lake's database in PostgreSQL."""
    return catalogue(lake.home.warehouse)["dbname"]


def age(lake: Lake) -> None:
    """Let all that is in the lake be two days older."""
    older = "snapshot_time = snapshot_time - INTERVAL '2 days'"
    places.postgresql().ask(f"UPDATE folded.ducklake_snapshot SET {older}", catalog(lake))


def files(lake: Lake) -> int:
    """Return how many files a query of the table opens."""
    with lake.connected() as database:
        [(count,)] = database.execute(
            "SELECT count(*) FROM ducklake_list_files('lake', 'things')"
        ).fetchall()
    return int(count)


def test_a_table_never_has_many_more_files_than_that(lake: Lake) -> None:
    nights(lake)
    assert files(lake) <= MOST + 1


def test_a_small_file_is_asked_for_once_however_many_columns_are_read(lake: Lake) -> None:
    with lake.connected() as database:
        database.execute("CREATE TABLE things AS SELECT range AS number, 1 AS night FROM range(10)")
    with lake.connected() as database:
        database.execute("CALL enable_logging('HTTP')")
        assert database.execute(SUMS).fetchall()[0][:2] == (10, 45)
        asked = "FROM duckdb_logs_parsed('HTTP') SELECT count(*) WHERE request.type = 'GET'"
        assert database.execute(asked).fetchall() == [(1,)]


def test_every_kept_version_reads_as_it_was_published(lake: Lake) -> None:
    kept, held = nights(lake)
    assert kept.numbers == [NIGHTS - 2, NIGHTS - 1, NIGHTS]
    for number in kept.numbers:
        with kept.reading(version(number)) as reader:
            assert reader.execute(SUMS).fetchall() == [held[number]]


def test_analysts_read_the_version_that_is_opened_while_newer_files_are_there(lake: Lake) -> None:
    kept, held = nights(lake)
    kept.point(version(NIGHTS - 1))
    kept.tidy()
    reader, number = opened(lake.home)
    with reader:
        assert reader.execute(SUMS).fetchall() == [held[number]]
    assert number == NIGHTS - 1


def test_who_looks_back_into_a_night_sees_the_version_before_it(lake: Lake) -> None:
    kept, held = nights(lake)
    with lake.connected() as database:
        database.execute("INSERT INTO things VALUES (0, 0)")
        [(moment,)] = database.execute("SELECT now()").fetchall()
        database.execute("INSERT INTO things VALUES (1, 0)")
    kept.point(kept.put(version(NIGHTS + 1)))
    with bare(lake.home) as analyst:
        attach(analyst, lake.home, "READ_ONLY", schema=PUBLISHED)
        seen = f"SELECT count(*) FROM lake.things AT (TIMESTAMP => '{moment}')"
        assert analyst.execute(seen).fetchall() == [held[NIGHTS][:1]]
        now = analyst.execute("SELECT count(*) FROM lake.things").fetchall()
        assert now == [(int(str(held[NIGHTS][0])) + 2,)]


def test_a_version_that_another_run_published_meanwhile_stays_as_it_is(lake: Lake) -> None:
    kept, held = nights(lake)
    with lake.connected() as database:
        database.execute("INSERT INTO things VALUES (0, 0)")
    with pytest.raises(PublicationFailed, match="another run published version 12 meanwhile"):
        kept.put(version(NIGHTS))
    reader, _number = opened(lake.home)
    with reader:
        assert reader.execute(SUMS).fetchall() == [held[NIGHTS]]


def test_a_store_that_is_away_is_told_to_who_reads_a_version(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, _held = nights(lake)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    words = "the lake cannot be reached: .*run it again when it answers"
    with pytest.raises(StorageFailed, match=words), published.opened(lake.home) as source:
        source.database.execute(SUMS)
    with pytest.raises(StorageFailed, match=words), kept.reading(version(NIGHTS)) as reader:
        reader.execute(SUMS)


def test_a_store_that_goes_away_half_way_is_told_to_who_reads(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path / "s3")
    store.begin()
    with pytest.MonkeyPatch.context() as variables:
        for name, value in store.environment.items():
            variables.setenv(name, value)
        home = places.lake(tmp_path / "home", store.bucket("lake"))
        lake = Lake(home, "200MB", lambda _words: None, Files(home.state))
        with lake.connected() as database:
            for _ in range(2):  # a file each
                database.execute("CREATE TABLE IF NOT EXISTS things (number BIGINT)")
                database.execute(f"INSERT INTO things FROM range({10 * published.BATCH})")
        kept = Snapshots(lake)
        kept.point(kept.put(version(1)))
        with published.opened(home) as source:
            batches = source.batches("FROM things")
            assert next(batches).num_rows > 0
            store.kill()
            with pytest.raises(StorageFailed, match="snapshot cannot be read to its end"):
                list(batches)


def test_a_catalog_that_is_away_is_told_as_the_lake_s(tmp_path: Path) -> None:
    away = Home(tmp_path, "ducklake:postgres:dbname=lake host=127.0.0.1 port=1", "s3://b/lake")
    lake = Lake(away, "200MB", lambda _words: None, Files(away.state))
    with pytest.raises(StorageFailed, match=r"the lake's catalog .*PARTNER_SYNC_WAREHOUSE"):
        Snapshots(lake).point(version(1))


def test_the_newest_version_is_unchanged_until_something_is_written(lake: Lake) -> None:
    kept, _held = nights(lake)  # the last one's files were merged after it was published
    newest, older = version(NIGHTS), version(NIGHTS - 1)
    assert kept.unchanged(newest, newest)
    assert not kept.unchanged(older, newest)
    assert not kept.unchanged(newest, older)
    with lake.connected() as database:
        database.execute("INSERT INTO things VALUES (0, 0)")
    assert not kept.unchanged(newest, newest)


def test_a_version_that_analysts_see_is_asked_once(lake: Lake) -> None:
    kept, held = nights(lake)
    asked = list[str]()

    def ask(source: published.Published) -> list[tuple[object, ...]]:
        asked.append(source.version)
        return source.database.execute(SUMS).fetchall()

    for number in (NIGHTS, NIGHTS, NIGHTS - 1, NIGHTS - 1):
        kept.point(version(number))
        assert published.kept(lake.home, ask) == [held[number]]
    assert asked == [f"v{NIGHTS:08}", f"v{NIGHTS - 1:08}"]


def test_a_publication_does_not_wait_for_an_analyst_who_is_in_a_transaction(lake: Lake) -> None:
    kept, held = nights(lake)
    reader, number = opened(lake.home)
    with reader:
        reader.begin()
        assert reader.execute(SUMS).fetchall() == [held[number]]
        places.postgresql().ask(f"ALTER DATABASE {catalog(lake)} SET lock_timeout = '1s'")
        kept.point(kept.put(version(NIGHTS + 1)))
        assert reader.execute(SUMS).fetchall() == [held[number]]


def test_who_has_a_version_open_reads_it_for_a_day_after_it_was_let_go(lake: Lake) -> None:
    kept, held = nights(lake)
    reader, number = opened(lake.home)
    with reader:
        with lake.connected() as database:
            database.execute("DELETE FROM things")
        for newer in range(1, 4):
            kept.point(kept.put(version(NIGHTS + newer)))
            kept.keep_only(kept.numbers[-1:])
        assert kept.numbers == [NIGHTS + 3]
        assert reader.execute(SUMS).fetchall() == [held[number]]
        age(lake)
        kept.keep_only(kept.numbers)
        with pytest.raises(duckdb.Error, match="snapshot"):
            reader.execute(SUMS).fetchall()


def test_what_a_killed_fold_left_is_removed_a_day_later_or_now(lake: Lake) -> None:
    kept, held = nights(lake)
    left = f"{lake.home.lake_data}/main/things/ducklake-left.parquet"
    store = S3FileSystem(skip_instance_cache=True)
    store.pipe(left, b"what it wrote")
    kept.tidy()
    assert store.exists(left)
    kept.keep_only([NIGHTS], now=True)
    assert not store.exists(left)
    with kept.reading(version(NIGHTS)) as reader:
        assert reader.execute(SUMS).fetchall() == [held[NIGHTS]]


def test_the_files_that_were_merged_are_let_go(lake: Lake) -> None:
    kept, held = nights(lake)
    kept.keep_only([NIGHTS], now=True)
    store = S3FileSystem(skip_instance_cache=True)
    assert 0 < len(store.find(lake.home.lake_data)) <= 2 * (MOST + 1)  # each may have deletions
    with kept.reading(version(NIGHTS)) as reader:
        assert reader.execute(SUMS).fetchall() == [held[NIGHTS]]
