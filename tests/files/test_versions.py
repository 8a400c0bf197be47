"""Versions and books of a home on a bucket, with two machines: who publishes, who sees what."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from pipelines.app.maintenance import prune_files, rollback, verify_files
from pipelines.app.nightly import build_with_books, rebuild_with_books
from pipelines.archive.scan_file import open_path
from pipelines.config.home import Home
from pipelines.core.errors import Superseded
from pipelines.files.bucket import Bucket
from pipelines.files.cached import CachedStore
from pipelines.finance import books
from pipelines.finance.books import make_books
from pipelines.finance.report import read_figures_of_books, write_report
from pipelines.metadata.engine import Metadata
from pipelines.metadata.locks import Locks
from pipelines.metadata.tables import BooksRow, BreakRow, Scan, VersionRow
from pipelines.versions import build as building
from pipelines.versions.change import change_versions
from pipelines.warehouse.books import BooksFolder
from tests.archive.scans import HEADER
from tests.on_bucket import moved, on
from tests.versions.homes import DAY, Reading, Stores, home_of, read, usage
from tests.versions.named import erase, files_with, publish_names

pytest_plugins = ["tests.bucket"]

FURTHER = usage(*range(1, 12))

named = home_of(publish_names)


def second(stores: Stores, bucket: Bucket, root: Path) -> Stores:
    """Return the home on another machine: the same database and bucket; other folder and locks."""
    home = Home(root).prepare()
    for name in ("connections_file", "mapping_file"):
        file: Path = getattr(stores.home, name)
        if file.exists():
            getattr(home, name).write_bytes(file.read_bytes())
    store = CachedStore(home.root, bucket, stores.settings.readers)
    store.require_copies()
    store.refresh()
    metadata = Metadata(stores.metadata.engine, Locks(home.locks))
    settings = stores.settings.model_copy(update={"home": home})
    warehouse = replace(stores.warehouse, home=home)
    return on(replace(stores, settings=settings, metadata=metadata, warehouse=warehouse), store)


@pytest.fixture
def two(published: Stores, bucket: Bucket, tmp_path: Path) -> tuple[Stores, Stores]:
    one = moved(published, bucket)
    return one, second(one, bucket, tmp_path / "second")


def number_of(stores: Stores) -> int:
    return stores.warehouse.require_published().number


def published_by(stores: Stores) -> tuple[str, str]:
    """Return what the symlinks of a machine show."""
    links = (stores.home.link, stores.home.books_link)
    return tuple(link.resolve().name for link in links)  # type: ignore[return-value]


def test_another_machine_builds_on_what_the_first_has_published(
    two: tuple[Stores, Stores], bucket: Bucket
) -> None:
    one, other = two
    assert other.keys() == one.keys()
    read(one, Reading(FURTHER))
    built = build_with_books(other)
    assert built.version
    assert built.version.number == 2
    assert len(other.keys()) == 11
    # The first one sees it when its next command begins.
    one.warehouse.store.refresh()
    assert one.keys() == other.keys()
    for stores in two:
        assert published_by(stores) == ("v00000002.duckdb", "v00000002-0001.duckdb")
        assert verify_files(stores)["damaged"] == []
        assert (stores.home.versions / "v00000002.duckdb").stat().st_mode & 0o777 == 0o444
    assert bucket.read("published.json")


def test_a_builder_that_is_behind_is_refused_and_publishes_nothing(
    two: tuple[Stores, Stores],
) -> None:
    one, other = two
    read(one, Reading(FURTHER))

    def build_behind() -> None:
        with change_versions(one):
            build_with_books(other)  # as if this machine had lost its lock
            building._build(one, early=False)

    with pytest.raises(Superseded, match=r"published .* publishes nothing") as refused:
        build_behind()
    assert refused.value.remedy
    one.warehouse.store.refresh()
    assert (number_of(one), number_of(other)) == (2, 2)
    # What the refused one has written is deleted by the next.
    assert [version.number for version in other.warehouse.versions()] == [1, 2, 3]
    build_with_books(other)
    assert [version.number for version in other.warehouse.versions()] == [1, 2]
    assert one.versions() == {1: "published", 2: "published", 3: "deleted"}
    assert verify_files(one)["damaged"] == []


def test_books_that_are_behind_are_refused_and_nothing_is_remembered_of_them(
    two: tuple[Stores, Stores], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    publish = books._publish

    def be_overtaken_and_publish(*arguments: object) -> None:
        monkeypatch.setattr(books, "_publish", publish)
        make_books(other, again=True)
        publish(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(books, "_publish", be_overtaken_and_publish)
    with pytest.raises(Superseded):
        make_books(one, again=True)
    with one.metadata.transaction() as session:
        assert session.query(BooksRow).count() == 2  # of the first night, and of the other machine
        assert session.query(BreakRow).count() == 0
    assert BooksFolder(other.warehouse).published()


@pytest.mark.parametrize("change", ["rollback", "rebuild", "prune", "report"])
def test_what_one_machine_changes_the_other_sees(two: tuple[Stores, Stores], change: str) -> None:
    one, other = two
    read(one, Reading(FURTHER))
    build_with_books(one)
    changes: dict[str, Callable[[], object]] = {
        "rollback": lambda: rollback(other, 1, "wrong"),
        "rebuild": lambda: rebuild_with_books(other),
        "prune": lambda: prune_files(other, 1, force=True),
        "report": lambda: write_report(other, read_figures_of_books(other)),
    }
    other.clock.now += 30 * DAY
    other.warehouse.store.refresh()
    changes[change]()
    one.warehouse.store.refresh()
    assert number_of(one) == number_of(other)
    assert one.keys() == other.keys()
    assert one.versions() == other.versions()
    for stores in two:
        assert verify_files(stores)["damaged"] == []
    kept = {file.name for file in one.warehouse.store.list(one.home.versions, "*")}
    assert {file.name for file in one.home.versions.iterdir()} <= kept


def test_nobody_downloads_versions_to_know_which_scans_they_hold(
    published: Stores, bucket: Bucket, tmp_path: Path
) -> None:
    one = moved(published, bucket)
    for most in (11, 12, 13):
        read(one, Reading(usage(*range(1, most))))
        build_with_books(one)
    other = second(one, bucket, tmp_path / "second")
    other.clock.now += 30 * DAY
    assert prune_files(other, 1, force=True)
    assert [*other.home.versions.iterdir()] == []
    with other.metadata.transaction() as session:
        contents = {row.number: row.content for row in session.query(VersionRow)}
    for content in contents.values():
        assert content
        assert len(content["scans"]) == 1  # those of its base stand in the row of the base


def test_what_is_erased_is_gone_from_every_machine_at_its_next_command(
    named: Stores, bucket: Bucket, tmp_path: Path
) -> None:
    one = moved(named, bucket)
    other = second(one, bucket, tmp_path / "second")
    for version in other.warehouse.versions():
        version.file()
    with other.metadata.transaction() as session:
        scans = [*session.query(Scan)]
    for scan in scans:
        other.archive.open_sealed(scan)
    begun = other.archive.create(structs.replace(HEADER, scan_id="begun"))
    exports = other.home.exports / "v00000003-csv"
    exports.mkdir(parents=True)
    (exports / "usage.csv").write_text("Ada Lövelace")
    assert files_with(other.home.root)
    assert erase(one)
    assert files_with(one.home.root) == []
    other.warehouse.store.refresh()
    assert files_with(other.home.root) == []
    assert open_path(begun.path).exists()  # its row is not known here
    folder = tmp_path / "objects"
    for name in bucket.list():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb", buffering=0) as target:
            bucket.download(name, target)
    assert files_with(folder) == []
    assert other.keys() == one.keys()
