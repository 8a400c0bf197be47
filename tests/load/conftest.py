"""A warehouse in memory for each test."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.load.scans import Warehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute("SET threads = 1")
        yield Warehouse(tmp_path, db)
