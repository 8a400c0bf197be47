"""Publishing: a verified copy behind one link; older ones are kept, leftovers swept."""

import stat
import threading

import duckdb
import pytest

from pipelines.clock import SYSTEM
from pipelines.errors import PublicationFailed, WarehouseDamaged
from pipelines.state.versions import Version
from pipelines.warehouse import publish as publishing
from pipelines.warehouse.publish import publish
from tests.warehouse.conftest import Warehouse


def published(warehouse: Warehouse, keep: int = 3) -> Version:
    version = publish(warehouse.work, warehouse.ledger, "run", keep, SYSTEM)
    assert version is not None
    return version


def test_the_link_names_a_read_only_copy(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1}, {"id": 2}]'))

    version = published(warehouse)

    link = warehouse.home.link
    assert link.is_symlink()
    assert link.resolve().name == version.file == "warehouse.v00000001.duckdb"
    assert stat.S_IMODE(link.stat().st_mode) == 0o444
    counts = {"current.things": 2, "meta.folds": 1, "meta.freshness": 1, "quarantine.things": 0}
    assert version.counts.items() >= counts.items()
    with duckdb.connect(link, read_only=True) as reader:
        assert reader.execute("SELECT id FROM current.things").fetchall() == [(1,), (2,)]
        fresh = reader.execute("SELECT stream, rows, duplicates, version FROM meta.freshness")
        assert fresh.fetchall() == [("things", 2, 0, 1)]
        told = reader.execute(
            "SELECT comment FROM duckdb_columns() WHERE column_name = 'duplicates'"
        )
        assert "each is in the table once" in str(told.fetchall())


def test_the_newest_versions_are_kept_and_no_number_is_used_twice(warehouse: Warehouse) -> None:
    for night in range(4):
        warehouse.fold(warehouse.manifest(f'[{{"id": {night}}}]'))
        published(warehouse, keep=2)

    files = sorted(file.name for file in warehouse.home.published.iterdir())
    assert files == ["warehouse.v00000003.duckdb", "warehouse.v00000004.duckdb"]


def test_a_file_that_the_ledger_forgot_keeps_its_number(warehouse: Warehouse) -> None:
    """A run killed between renaming the file and recording it."""
    warehouse.fold(warehouse.manifest('[{"id": 1}]'))
    (warehouse.home.published / "warehouse.v00000007.duckdb").touch()

    assert published(warehouse).file == "warehouse.v00000008.duckdb"


def test_what_a_killed_publication_left_is_swept(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1}]'))
    folder = warehouse.home.published
    left = ("warehouse.v00000001.duckdb.part", "x.part.wal", "warehouse.v00000009.duckdb.wal")
    for name in left:
        (folder / name).write_bytes(b"half")

    published(warehouse)

    assert [file.name for file in folder.iterdir()] == ["warehouse.v00000001.duckdb"]


def test_a_table_that_is_not_what_was_folded_is_not_published(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1}]'))
    first = published(warehouse)
    warehouse.fold(warehouse.manifest('[{"id": 1}, {"id": 2}]'))
    warehouse.query("DELETE FROM current.things WHERE id = 2")

    with pytest.raises(WarehouseDamaged, match="what analysts open stays as it was"):
        published(warehouse)

    assert warehouse.home.link.resolve().name == first.file
    assert [file.name for file in warehouse.home.published.iterdir()] == [first.file]


@pytest.mark.parametrize("counts", [{"current.things": 1}, {}])
def test_a_copy_that_differs_is_refused(warehouse: Warehouse, counts: dict[str, int]) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1}, {"id": 2}]'))
    published(warehouse)
    source = warehouse.home.work / "warehouse.duckdb"

    with pytest.raises(PublicationFailed, match="the last published file stays"):
        publishing._verify(source, warehouse.home.link, counts)


def test_nothing_new_is_not_copied_again(warehouse: Warehouse) -> None:
    assert publish(warehouse.work, warehouse.ledger, "run", 3, SYSTEM) is None
    warehouse.fold(warehouse.manifest('[{"id": 1}]'))
    assert published(warehouse) == published(warehouse)
    warehouse.home.link.unlink()
    assert published(warehouse).version == 2


def test_readers_see_whole_nights_only(warehouse: Warehouse) -> None:
    """Four publications under a hammering reader: it never fails and never sees half of one."""
    seen: list[tuple[object, ...]] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            with duckdb.connect(warehouse.home.link, read_only=True) as reader:
                row = reader.execute(
                    "SELECT (SELECT min(night) FROM current.things), "
                    "(SELECT max(night) FROM current.things), "
                    "(SELECT max(version) FROM meta.freshness)"
                ).fetchone()
            assert row is not None
            seen.append(row)

    def night(number: int) -> None:
        rows = ", ".join(f'{{"id": {row}, "night": {number}}}' for row in range(50))
        warehouse.fold(warehouse.manifest(f"[{rows}]"))
        published(warehouse)

    night(1)
    reader = threading.Thread(target=read)
    reader.start()
    for number in (2, 3, 4, 5):
        night(number)
    over.set()
    reader.join()
    assert seen
    assert {(row[0] == row[1] == row[2]) for row in seen} == {True}
