"""Verifying a home: each fault is found, and said with where, what, what it means, what to do."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.clock import SYSTEM
from pipelines.warehouse.publish import Edition, publish
from pipelines.warehouse.verify import Checked, Fault, Verification
from tests import archives
from tests.warehouse.conftest import Warehouse
from tests.warehouse.kept import night


def faults(warehouse: Warehouse) -> list[Fault]:
    silent: Callable[[Checked], None] = lambda _news: None  # noqa: E731
    looked = Verification(warehouse.work, warehouse.ledger, warehouse.archive, silent)
    return list(looked.faults())


def nights(warehouse: Warehouse) -> None:
    for number in range(2):
        records = f'[{{"id": 1, "amount": {number}.5}}, {{"id": 2, "amount": 7}}]'
        night(warehouse, records, number=number)
        publish(warehouse.work, warehouse.ledger, Edition("run", 3), SYSTEM)


def page(warehouse: Warehouse) -> str:
    return archives.pages(warehouse.archive)[0]


def spoil(file: Path) -> None:
    file.chmod(0o644)
    file.write_bytes(otherwise(file.read_bytes()))


def otherwise(content: bytes) -> bytes:
    return content[:-20] + b"x" * 20


def behead(file: Path) -> None:
    """Spoil what is read first: the last blocks of a database may hold nothing."""
    file.write_bytes(b"x" * 100 + file.read_bytes()[100:])


def manifest(warehouse: Warehouse) -> str:
    return next(iter(warehouse.archive.store.sizes("manifests")))


def other_day(warehouse: Warehouse) -> None:
    harm = lambda content: content.replace(b'"2026-11-21"', b'"2026-11-01"')  # noqa: E731
    archives.changed(warehouse.archive, manifest(warehouse), harm)


def old_version(warehouse: Warehouse) -> Path:
    return warehouse.home.published / "warehouse.v00000001.duckdb"


SPOILED: dict[str, tuple[Callable[[Warehouse], object], str]] = {
    "page": (
        lambda home: archives.changed(home.archive, page(home), otherwise),
        "archive/pages/..: archived page .* cannot be read",
    ),
    "lost page": (
        lambda home: archives.lost(home.archive, page(home)),
        "archive/manifests/.*: page .* is missing",
    ),
    "lost manifest": (
        lambda home: archives.lost(home.archive, manifest(home)),
        "manifest .* cannot be read",
    ),
    "other manifest": (other_day, "day 2026-11-01, in the ledger 2026-11-21"),
    "table": (
        lambda home: home.query("DELETE FROM current.things WHERE id = 2"),
        r"work/warehouse.duckdb: .* holds .* but 2 in current, .* were folded.*built again",
    ),
    "value": (
        lambda home: home.query("UPDATE current.things SET amount = 0"),
        "the sum of amount 0, expected 8.5 as in version 2, and nothing was folded since",
    ),
    "work": (
        lambda home: behead(home.work.file),
        "work/warehouse.duckdb: .*Move work/warehouse.duckdb away",
    ),
    "version": (lambda home: spoil(old_version(home)), r"published/warehouse.v00000001.duckdb: "),
    "link": (
        lambda home: home.home.link.unlink(),
        "warehouse.duckdb: it does not lead to warehouse.v00000002.duckdb.*partner-sync publish",
    ),
}


def test_a_sound_home_has_no_faults(warehouse: Warehouse) -> None:
    nights(warehouse)
    assert faults(warehouse) == []


def test_an_empty_home_has_no_faults(warehouse: Warehouse) -> None:
    assert faults(warehouse) == []


@pytest.mark.parametrize("name", SPOILED)
def test_every_fault_is_found_and_said(warehouse: Warehouse, name: str) -> None:
    nights(warehouse)
    harm, words = SPOILED[name]
    harm(warehouse)

    found = faults(warehouse)

    assert found
    assert re.search(words, " | ".join(map(str, found)))
    assert all(each.where and each.means and each.do for each in found)


def test_progress_ends_with_all_of_the_archive(warehouse: Warehouse) -> None:
    nights(warehouse)
    news: list[Checked] = []
    looked = Verification(warehouse.work, warehouse.ledger, warehouse.archive, news.append)
    assert list(looked.faults()) == []
    sizes = sum(warehouse.archive.pages().values())
    assert [each.all for each in news] == [sizes, sizes]
    assert news[-1].done == sizes
