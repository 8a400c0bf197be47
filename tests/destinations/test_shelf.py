"""What holds for every destination: words, folders, whole or nothing, and the published file."""

import os
import stat
from pathlib import Path

import duckdb
import filelock
import pytest

from pipelines import destinations
from pipelines.destinations import DESTINATIONS
from pipelines.errors import ConfigurationError, ExportFailed, NothingPublished, StorageFailed
from pipelines.settings import Home
from tests.destinations.conftest import Exporting

FILES = [each.name for each in DESTINATIONS if each.files]


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


DEFAULT = ["current.usage", "current.usage__events", "history.usage"]


def test_the_shelf_holds_what_the_issue_asks_for() -> None:
    assert [each.name for each in DESTINATIONS] == ["csv", "parquet", "sql", "xlsx"]
    assert all(each.description.endswith(".") for each in DESTINATIONS)


@pytest.mark.parametrize("to", FILES)
def test_files_appear_whole_under_a_name_and_a_link(
    exporting: Exporting, home: Home, to: str
) -> None:
    mask = os.umask(0o077)
    try:
        made = exporting(to=to)
    finally:
        os.umask(mask)

    folder = home.exports / f"v00000042.20261121T123000Z.{to}"
    assert made.place == str(folder)
    assert [(each.table, each.rows) for each in made.written] == list(
        zip(DEFAULT, (5, 0, 6), strict=True)
    )
    assert names(folder) == sorted(f"{name}.{to}" for name in DEFAULT)
    assert (home.exports / to).resolve() == folder
    assert names(home.exports) == sorted([".export.lock", folder.name, to])
    modes = {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert modes == {0o644}
    assert {stat.S_IMODE(each.stat().st_mode) for each in (home.exports, folder)} == {0o755}


def test_tables_are_chosen_by_name_and_one_without_a_schema_is_of_current(
    exporting: Exporting, tmp_path: Path
) -> None:
    made = exporting("usage", "meta.odd", "current.usage_seen", to="csv", out=tmp_path / "out")

    assert [each.table for each in made.written] == [
        "current.usage",
        "meta.odd",
        "current.usage_seen",
    ]
    odd = (tmp_path / "out" / "csv" / "meta.odd.csv").read_bytes()
    assert odd == (
        b'huge,list,struct,json,time,double\r\n1,"[1, 2]",{\'a\': 1},"{""a"": 1}",10:00:00,1.5\r\n'
    )


@pytest.mark.parametrize(
    ("tables", "to", "words"),
    [
        (["nothing"], "csv", "no table 'nothing' in warehouse.v00000042.duckdb; there are current"),
        ([], "sqlite:///secret.db", "never the URL"),
        ([], "sql", "the NAME of an environment variable"),
        ([], "NOT_SET_ANYWHERE", "NOT_SET_ANYWHERE is not set to a SQLAlchemy URL"),
    ],
)
def test_what_nobody_knows_is_refused_in_words(
    exporting: Exporting, home: Home, tables: list[str], to: str, words: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        exporting(*tables, to=to)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)
    assert not home.exports.exists()


def test_a_folder_is_for_files_only(exporting: Exporting, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a database has its own place"):
        exporting(to="SOME_URL", out=tmp_path)


def test_before_the_first_publication_there_is_nothing_to_export(
    exporting: Exporting, home: Home
) -> None:
    home.link.unlink()
    with pytest.raises(NothingPublished, match="nothing was published yet"):
        exporting(to="csv")


def test_an_export_that_fails_leaves_nothing_and_the_earlier_one(
    exporting: Exporting, home: Home
) -> None:
    exporting("usage__events", to="xlsx")
    before = names(home.exports)
    home.link.unlink()
    long = home.published / "warehouse.v00000043.duckdb"
    with duckdb.connect(long) as database:
        database.execute("CREATE SCHEMA current; CREATE TABLE current.good AS SELECT 1 AS i")
        database.execute("CREATE TABLE current.long AS SELECT repeat('x', 40000) AS words")
    home.link.symlink_to(long)

    with pytest.raises(ExportFailed, match=r"current.long, row 1, words: a text of 40,000"):
        exporting(to="xlsx")
    assert names(home.exports) == before


def test_what_a_killed_export_left_is_swept_and_two_at_once_are_not(
    exporting: Exporting, home: Home
) -> None:
    left = home.exports / ".part-killed"
    left.mkdir(parents=True)
    (left / "current.usage.csv").write_text("half")
    with (
        filelock.FileLock(home.exports / ".export.lock"),
        pytest.raises(ExportFailed, match="another export"),
    ):
        exporting(to="csv")
    assert left.exists()
    exporting(to="csv")
    assert not left.exists()


def test_the_same_second_again_is_refused(exporting: Exporting) -> None:
    exporting(to="csv")
    with pytest.raises(ExportFailed, match="this very second"):
        exporting(to="csv")


def test_what_the_disk_refuses_is_said(exporting: Exporting, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageFailed, match="Not a directory"):
        exporting(to="csv", out=tmp_path / "file" / "below")


def test_exporting_changes_nothing_that_is_published(exporting: Exporting, home: Home) -> None:
    before = home.link.read_bytes(), names(home.published)
    for to in FILES:
        exporting(to=to)
    assert (home.link.read_bytes(), names(home.published)) == before
    assert destinations.chosen("csv").name == "csv"
