"""A byte that flipped on disk: found wherever it is, and said with the table that it is in."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from pipelines.clock import SYSTEM
from pipelines.warehouse import damage, database
from pipelines.warehouse.publish import Edition, publish
from tests.warehouse.conftest import Warehouse
from tests.warehouse.kept import night
from tests.warehouse.test_verify import faults

HEADERS, BLOCK = 3 * 4096, 262_144
ROWS = 1500


@contextmanager
def flipped(file: Path, place: int) -> Iterator[None]:
    """Let one byte of a file be another one for a while."""

    def flip() -> None:
        with file.open("r+b") as opened:
            opened.seek(place)
            (byte,) = opened.read(1)
            opened.seek(place)
            opened.write(bytes([byte ^ 1]))

    mode = file.stat().st_mode
    file.chmod(0o644)
    flip()
    yield
    flip()
    file.chmod(mode)


def places(file: Path) -> range:
    """Return a place in every block."""
    return range(HEADERS + BLOCK // 2, file.stat().st_size, BLOCK)


def free(file: Path) -> int:
    """Return how many blocks hold nothing."""
    with duckdb.connect(file, read_only=True) as reader:
        return int(
            reader.execute("SELECT free_blocks FROM pragma_database_size()").fetchall()[0][0]
        )


@pytest.fixture
def folded(warehouse: Warehouse) -> Warehouse:
    """Publish a night of long texts, which no sum and no count looks at."""
    texts = random.Random(7)
    rows = [
        {"id": each, "text": texts.randbytes(300).hex(), "lines": [{"note": texts.random().hex()}]}
        for each in range(ROWS)
    ]
    night(warehouse, json.dumps(rows))
    publish(warehouse.work, warehouse.ledger, Edition("run", 3), SYSTEM)
    return warehouse


def test_a_byte_that_flipped_in_any_block_of_the_work_database_is_found(folded: Warehouse) -> None:
    file = folded.work.file
    found = []
    for place in places(file):
        with flipped(file, place):
            found.append(" | ".join(map(str, faults(folded))))
    assert len(found) > 4, found
    assert found.count("") <= free(file)
    said = [words for words in found if "current.things cannot be read (columns text)" in words]
    assert said, found
    assert all("Move work/warehouse.duckdb away and run sync" in words for words in said)
    assert faults(folded) == []


def test_a_byte_that_flipped_in_a_published_file_is_found_and_placed(folded: Warehouse) -> None:
    file = folded.home.link.resolve()
    found = []
    for place in places(file):
        with flipped(file, place):
            found.append(" | ".join(map(str, faults(folded))))
    assert "" not in found
    said = [words for words in found if "current.things cannot be read (columns text)" in words]
    assert said, found
    assert all("run `partner-sync publish`" in words for words in said)


def test_a_sound_file_has_no_damage(folded: Warehouse) -> None:
    with database.reading(folded.home.link.resolve(), "50MB") as reader:
        assert list(damage.found(reader)) == []
