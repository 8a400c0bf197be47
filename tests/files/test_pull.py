"""What an analyst's machine sees of a home on a bucket: `partner-sync pull`."""

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from pipelines.app.nightly import build_with_books
from pipelines.app.pull import pull
from pipelines.config.home import Home
from pipelines.core.errors import ConfigurationError, ExitCode, NewerFormat, StorageFailed
from pipelines.files import pointer
from pipelines.files.bucket import Bucket
from pipelines.files.pointer import POINTER, Pointer
from tests.cli.conftest import Cli
from tests.forked import run_forked
from tests.on_bucket import moved
from tests.versions.homes import Reading, Stores, read, usage

pytest_plugins = ["tests.bucket"]

KEYS = "SELECT count(*) FROM current.usage"
# Opens both files, again and again, as analysts do.
READER = """
import os, sys, duckdb
folder, end = sys.argv[1:]
seen = set()
is_last = False
while not is_last:
    is_last = os.path.exists(end)
    with duckdb.connect(f"{folder}/warehouse.duckdb", read_only=True) as db:
        db.execute(f"ATTACH '{folder}/books.duckdb' AS books (READ_ONLY)")
        seen.add(db.execute("SELECT count(*) FROM current.usage").fetchone()[0])
        db.execute("SELECT * FROM books.meta.books").fetchall()
print(sorted(seen))
"""


def count_of(folder: Path) -> int:
    with duckdb.connect(folder / "warehouse.duckdb", read_only=True) as db:
        ((count,),) = db.execute(KEYS).fetchall()
    return int(count)


def publish(stores: Stores, most: int) -> None:
    read(stores, Reading(usage(*range(1, most + 1))))
    build_with_books(stores)


def test_what_is_published_is_pulled_and_what_is_gone_is_deleted(
    published: Stores, bucket: Bucket, tmp_path: Path
) -> None:
    stores = moved(published, bucket).changed(keep_versions=1)
    folder = tmp_path / "here"
    rows = pull(folder, bucket.url, bucket.endpoint)
    assert [(row["content"], row["downloaded"]) for row in rows] == [
        ("v00000001", True),
        ("v00000001-0001", True),
    ]
    assert count_of(folder) == 10
    assert not any(row["downloaded"] for row in pull(folder))
    with duckdb.connect(folder / "warehouse.duckdb", read_only=True) as opened:
        publish(stores, 12)
        assert [row["content"] for row in pull(folder)] == ["v00000002", "v00000002-0001"]
        assert opened.execute(KEYS).fetchall() == [(10,)]
    assert count_of(folder) == 12
    # The version of the published books is kept until the next one has books.
    publish(stores, 13)
    pull(folder)
    versions = sorted(file.name for file in folder.glob("versions/*"))
    assert versions == ["v00000002.duckdb", "v00000003.duckdb"]
    with duckdb.connect(folder / "books.duckdb", read_only=True) as db:
        assert db.execute("SELECT version FROM meta.books").fetchall() == [(3,)]


def test_a_pulled_folder_is_queried_without_a_home(
    published: Stores, bucket: Bucket, tmp_path: Path
) -> None:
    moved(published, bucket)
    folder = tmp_path / "here"
    pull(folder, bucket.url, bucket.endpoint)
    before = sorted(folder.rglob("*"))
    query = (
        "SELECT count(*) AS rows, (SELECT version FROM meta.books) AS version FROM current.usage"
    )
    assert Cli(Home(folder)).json("sql", query) == [{"rows": 10, "version": 1}]
    refused = Cli(Home(folder))("sql", "DELETE FROM history.usage", code=ExitCode.USAGE)
    assert "read-only" in refused.stderr
    assert sorted(folder.rglob("*")) == before


def test_a_pulled_folder_whose_state_is_damaged_says_so(
    published: Stores, bucket: Bucket, tmp_path: Path
) -> None:
    """What could not be read was taken for what is not there: nothing would be published."""
    stores = moved(published, bucket)
    folder = Home(tmp_path / "here")
    pull(folder.root, bucket.url, bucket.endpoint)
    cli = Cli(folder)
    refused = cli("status", code=ExitCode.USAGE).stderr
    assert "has files that were pulled" in " ".join(refused.split())
    folder.pulled_file.write_text("{")
    assert cli.json("sql", KEYS) == [{"count_star()": 10}]
    with pytest.raises(StorageFailed, match=r"pulled\.json cannot be read") as raised:
        pull(folder.root)
    assert f"pull {folder.root}` with --from" in raised.value.remedy
    publish(stores, 12)
    pull(folder.root, bucket.url, bucket.endpoint)
    assert count_of(folder.root) == 12
    pull(folder.root)
    folder.pulled_file.unlink()
    folder.pulled_file.mkdir()
    assert cli.json("sql", KEYS) == [{"count_star()": 12}]
    folder.link.unlink()
    lost = cli("sql", KEYS, code=ExitCode.NOTHING_PUBLISHED).stderr
    assert "warehouse.duckdb does not exist" in " ".join(lost.split())


def test_a_reader_reads_all_the_time_while_versions_are_pulled_and_deleted(
    published: Stores, bucket: Bucket, tmp_path: Path
) -> None:
    stores = moved(published, bucket).changed(keep_versions=1)
    folder, end = tmp_path / "here", tmp_path / "end"
    pull(folder, bucket.url, bucket.endpoint)
    command = [sys.executable, "-c", READER, str(folder), str(end)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        for most in range(11, 17):
            publish(stores, most)
            pull(folder)
        end.touch()
        seen, _ = reader.communicate(timeout=60)
    assert reader.returncode == 0
    assert "16" in seen


def test_what_is_not_what_was_published_replaces_nothing(
    published: Stores, bucket: Bucket, tmp_path: Path
) -> None:
    stores = moved(published, bucket)
    folder = tmp_path / "here"
    pull(folder, bucket.url, bucket.endpoint)
    publish(stores, 12)
    whole = stores.warehouse.require_published().file().read_bytes()
    for damaged in (whole[:-1], whole[:-1] + b"x"):
        bucket.upload(damaged, "versions/v00000002.duckdb")
        with pytest.raises(StorageFailed, match=r"v00000002.duckdb .* another digest"):
            pull(folder)
        assert count_of(folder) == 10
    bucket.delete("versions/v00000002.duckdb")
    with pytest.raises(StorageFailed, match="are not in the bucket"):
        pull(folder)
    assert count_of(folder) == 10
    bucket.upload(whole, "versions/v00000002.duckdb")
    pull(folder)
    assert count_of(folder) == 12
    # The name of a file that is here is used again, as after the bucket was made anew.
    publish(stores, 13)
    here = folder / "versions" / "v00000003.duckdb"
    here.write_bytes(stores.warehouse.require_published().file().read_bytes()[:-1] + b"x")
    pull(folder)
    assert count_of(folder) == 13


def test_two_processes_pull_at_once(published: Stores, bucket: Bucket, tmp_path: Path) -> None:
    moved(published, bucket)
    threads = [
        threading.Thread(target=pull, args=(tmp_path / "here", bucket.url, bucket.endpoint))
        for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert count_of(tmp_path / "here") == 10


def test_a_folder_that_cannot_be_pulled_to_is_left_as_it_is(
    published: Stores, bucket: Bucket, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="Nothing is published"):
        pull(tmp_path / "empty", bucket.url, bucket.endpoint)
    with pytest.raises(ConfigurationError, match="not said which bucket"):
        pull(tmp_path / "empty")
    with pytest.raises(ConfigurationError, match="not said which bucket") as refused:
        pull(tmp_path / "empty", "s3://key:canary@bucket")
    assert "canary" not in str(refused.value)
    with pytest.raises(ConfigurationError, match="files that were not pulled: versions, books"):
        pull(published.home.root, bucket.url, bucket.endpoint)
    moved(published, bucket)
    pull(tmp_path / "here", bucket.url, bucket.endpoint)
    with pytest.raises(ConfigurationError, match="has files of"):
        pull(tmp_path / "here", f"{bucket.url}-other", bucket.endpoint)
    now = bucket.read(POINTER)
    bucket.write(POINTER, pointer.encode(Pointer(format=2)), now)
    with pytest.raises(NewerFormat, match="has format 2"):
        pull(tmp_path / "here")
    assert count_of(tmp_path / "here") == 10


def test_the_command_needs_no_home(published: Stores, bucket: Bucket, tmp_path: Path) -> None:
    moved(published, bucket)
    variables = {"PARTNER_SYNC_HOME": str(tmp_path / "here")}
    address = ("--from", bucket.url, "--endpoint", str(bucket.endpoint))
    code, output = run_forked(["pull", *address], variables)
    assert (code, output.count("v00000001")) == (0, 2)
    assert run_forked(["pull", "--json"], variables)[0] == 0
    assert count_of(tmp_path / "here") == 10
    code, output = run_forked(["pull", str(tmp_path / "other")], variables)
    assert (code, "--from s3://bucket/prefix" in output) == (2, True)


def test_a_bucket_that_is_not_there_is_named(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = replace(bucket, url="s3://nowhere/home", retry_seconds=0.2)
    monkeypatch.setattr("pipelines.app.pull.open_bucket", lambda *_: lost)
    with pytest.raises(StorageFailed, match="s3://nowhere/home cannot be used"):
        pull(tmp_path / "here", lost.url)
