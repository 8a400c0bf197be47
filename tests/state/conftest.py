"""A ledger of its own for every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests import ledgers


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Engine]:
    engine = ledgers.opened(tmp_path)
    yield engine
    engine.dispose()
