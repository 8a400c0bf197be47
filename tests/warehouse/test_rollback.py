"""A step back: analysts open an older version until something new is folded."""

from dataclasses import replace

import duckdb
import pytest

from pipelines.clock import SYSTEM
from pipelines.errors import ConfigurationError, PublicationFailed
from pipelines.state import versions
from pipelines.state.versions import Rollback, Version
from pipelines.warehouse.publish import Edition, publish, roll_back
from tests.virtual import EPOCH
from tests.warehouse.conftest import Warehouse

WANTED = Rollback(0, 0, "ann", EPOCH, "wrong amounts")


def nights(warehouse: Warehouse, count: int, *, first: int = 1) -> None:
    for number in range(first, first + count):
        warehouse.fold(warehouse.manifest(f'[{{"id": {number}}}]'))
        again(warehouse)


def again(warehouse: Warehouse) -> Version:
    version = publish(warehouse.work, warehouse.ledger, Edition("run", 3), SYSTEM)
    assert version is not None
    return version


def open_now(warehouse: Warehouse) -> int:
    with duckdb.connect(warehouse.home.link, read_only=True) as reader:
        row = reader.execute("SELECT max(version) FROM meta.freshness").fetchone()
    assert row is not None
    return int(row[0])


def test_the_version_before_is_opened_and_the_ledger_says_so(warehouse: Warehouse) -> None:
    nights(warehouse, 2)
    assert versions.rolled_back(warehouse.ledger) is None

    version = roll_back(warehouse.work, warehouse.ledger, None, WANTED)

    assert version.version == open_now(warehouse) == 1
    assert versions.opened(warehouse.ledger) == version
    back = versions.rolled_back(warehouse.ledger)
    assert back == replace(WANTED, newest=2, opened=1)
    assert back.words.startswith("version 2 was rolled back to 1 by ann at 2026-")
    assert "(wrong amounts)" in back.words


def test_it_stays_until_something_new_is_folded(warehouse: Warehouse) -> None:
    nights(warehouse, 2)
    roll_back(warehouse.work, warehouse.ledger, None, WANTED)
    assert again(warehouse).version == open_now(warehouse) == 1
    warehouse.home.link.unlink()
    assert again(warehouse).version == open_now(warehouse) == 1

    nights(warehouse, 1, first=3)

    assert open_now(warehouse) == 3
    assert versions.rolled_back(warehouse.ledger) is None


def test_one_may_go_further_back_and_forward_again(warehouse: Warehouse) -> None:
    nights(warehouse, 3)
    for to, opened in ((None, 2), (None, 1), (3, 3), (1, 1)):
        assert roll_back(warehouse.work, warehouse.ledger, to, WANTED).version == opened
        assert open_now(warehouse) == opened
    roll_back(warehouse.work, warehouse.ledger, 3, WANTED)
    assert versions.rolled_back(warehouse.ledger) is None


def test_a_step_back_needs_no_work_database(warehouse: Warehouse) -> None:
    nights(warehouse, 2)
    warehouse.work.file.write_bytes(b"damaged")
    assert roll_back(warehouse.work, warehouse.ledger, None, WANTED).version == 1


@pytest.mark.parametrize(
    ("count", "to", "words"),
    [
        (0, None, "nothing was published yet"),
        (1, None, "no published file of a version before 1; there are 1 "),
        (4, 1, r"no published file of a version 1; there are 2, 3, 4 \(keep_versions"),
    ],
)
def test_what_is_not_there_cannot_be_opened(
    warehouse: Warehouse, count: int, to: int | None, words: str
) -> None:
    nights(warehouse, count)
    with pytest.raises(ConfigurationError, match=words):
        roll_back(warehouse.work, warehouse.ledger, to, WANTED)
    assert versions.rolled_back(warehouse.ledger) is None


def test_a_damaged_file_is_not_opened(warehouse: Warehouse) -> None:
    nights(warehouse, 2)
    file = warehouse.home.published / "warehouse.v00000001.duckdb"
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-4096])
    with pytest.raises(PublicationFailed):
        roll_back(warehouse.work, warehouse.ledger, None, WANTED)
    assert open_now(warehouse) == 2
