"""Publishing: a verified copy behind one link; older ones are kept, leftovers swept."""

import resource
import stat
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.clock import SYSTEM
from pipelines.errors import PublicationFailed, StorageFailed, WarehouseDamaged
from pipelines.state import journal
from pipelines.state.journal import Reading
from pipelines.state.versions import Version
from pipelines.warehouse import editions, link
from pipelines.warehouse.publish import Edition, publish
from tests.warehouse.conftest import NOON, Warehouse
from tests.warehouse.kept import night


def published(warehouse: Warehouse, keep: int = 3) -> Version:
    version = publish(warehouse.work, warehouse.ledger, Edition("run", keep), SYSTEM)
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
    for number in range(4):
        warehouse.fold(warehouse.manifest(f'[{{"id": {number}}}]'))
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


def test_values_that_nobody_folded_are_not_published(warehouse: Warehouse) -> None:
    """The rows are as many as were folded, so only the control totals can tell."""
    warehouse.fold(warehouse.manifest('[{"id": 1, "amount": 10.25}]', connection="one"))
    night(warehouse, '[{"id": 1, "amount": 1}]', stream="others")
    first = published(warehouse)
    warehouse.query("UPDATE current.others SET amount = 2")
    warehouse.fold(warehouse.manifest('[{"id": 1, "amount": 10.5}]', connection="one"))

    words = r"current.others: the sum of amount 2, expected 1 as in version 1, .* somebody else"
    with pytest.raises(WarehouseDamaged, match=words):
        published(warehouse)

    assert warehouse.home.link.resolve().name == first.file


@pytest.mark.parametrize("rows", [("null", "null"), ("7", "7"), ("1.50", "4.25")])
def test_a_field_called_rows_is_not_their_number(warehouse: Warehouse, rows: list[str]) -> None:
    records = ", ".join(f'{{"id": {i}, "rows": {each}}}' for i, each in enumerate(rows))
    warehouse.fold(warehouse.manifest(f"[{records}]"))
    assert published(warehouse).counts["current.things"] == 2


def test_a_wider_column_has_the_same_total(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1, "amount": 1.5}]', connection="one"))
    published(warehouse)
    warehouse.fold(warehouse.manifest('[{"id": 1, "amount": 0.125}]', connection="two"))

    assert published(warehouse).totals["current.things"]["amount"] == "1.625"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"counts": {"current.things": 1}}, "ledger says {'current.things': 1}"),
        ({"counts": {}}, "the last published file stays"),
        ({"sha256": "0" * 64}, "the bytes of warehouse.v00000001.duckdb differ"),
    ],
)
def test_a_copy_that_differs_is_refused(
    warehouse: Warehouse, change: dict[str, Any], words: str
) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1}, {"id": 2}]'))
    version = published(warehouse)

    with pytest.raises(PublicationFailed, match=words):
        editions.verify(warehouse.home.link, replace(version, **change))


def test_nothing_new_is_not_copied_again(warehouse: Warehouse) -> None:
    assert publish(warehouse.work, warehouse.ledger, Edition("run", 3), SYSTEM) is None
    warehouse.fold(warehouse.manifest('[{"id": 1}]'))
    assert published(warehouse) == published(warehouse)


def test_a_lost_link_is_mended_and_a_lost_file_published_again(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1}]'))
    first = published(warehouse)
    warehouse.home.link.unlink()
    assert published(warehouse) == first
    assert warehouse.home.link.resolve().name == first.file
    warehouse.home.link.resolve().unlink()
    assert published(warehouse).version == 2


def test_what_is_in_doubt_since_is_published_though_nothing_was_folded(
    warehouse: Warehouse,
) -> None:
    night(warehouse, '[{"id": 1}]')
    assert published(warehouse).doubts == []
    reading = Reading("run-2", "default", "things", NOON.date())
    for moment in (1, 2):  # the second failure says the same: no copy for it
        scan = journal.begin(warehouse.ledger, reading, NOON + timedelta(hours=moment))
        journal.fail(warehouse.ledger, scan, NOON + timedelta(hours=moment), "no answer")
        assert published(warehouse).doubts == ["default/things"]

    assert published(warehouse).version == 2
    with duckdb.connect(warehouse.home.link, read_only=True) as reader:
        doubt = reader.execute("SELECT doubt FROM meta.proofs").fetchall()
    assert "a later reading failed, these are the rows of 2026-11-21: no answer" in str(doubt)


def test_a_disk_that_takes_no_copy_is_said_in_words(warehouse: Warehouse) -> None:
    """A limit on the size of files stands for the full disk; then there is room again."""
    rows = ", ".join(f'{{"id": {row}, "text": "{row:0200}"}}' for row in range(3000))
    warehouse.fold(warehouse.manifest('[{"id": 1}]'))
    first = published(warehouse)
    warehouse.fold(warehouse.manifest(f"[{rows}]"))
    with warehouse.work.writing() as writer:
        writer.execute("CHECKPOINT")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    words = "What analysts open is as it was.*make room.*partner-sync publish"
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, before[1]))
    try:
        with pytest.raises(StorageFailed, match=words):
            published(warehouse)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert warehouse.home.link.resolve().name == first.file
    assert [file.name for file in warehouse.home.published.iterdir()] == [first.file]

    assert published(warehouse).version == 2
    assert warehouse.query("SELECT count(*) FROM current.things") == [(3000,)]


def test_a_copy_that_was_interrupted_leaves_the_link(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1}]'))
    first = published(warehouse)
    file = warehouse.home.published / link.name(2)

    def interrupted(_part: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        link.put(warehouse.home, warehouse.work.file, file, interrupted)

    assert [each.name for each in warehouse.home.published.iterdir()] == [first.file]
    warehouse.fold(warehouse.manifest('[{"id": 2}]'))
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
