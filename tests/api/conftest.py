"""A ledger of its own for every test that shares something by it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from pipelines.state import database


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Engine]:
    engine = database.connect(tmp_path)
    yield engine
    engine.dispose()
