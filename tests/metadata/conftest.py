"""A metadata database in a file, and one session of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from pipelines.metadata.engine import Metadata


@pytest.fixture
def metadata(tmp_path: Path) -> Iterator[Metadata]:
    opened = Metadata.open(tmp_path / "metadata.db")
    yield opened
    opened.close()


@pytest.fixture
def session(metadata: Metadata) -> Iterator[Session]:
    with metadata.transaction() as opened:
        yield opened
