"""A warehouse in memory for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.load.scans import Warehouse, open_warehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with open_warehouse(tmp_path) as opened:
        yield opened
