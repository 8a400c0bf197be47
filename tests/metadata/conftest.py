"""A metadata database in a file, and one session of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from pipelines.metadata.engine import Metadata


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of a database without rows: the tables are created once."""
    file = tmp_path_factory.mktemp("metadata") / "metadata.db"
    Metadata.open(file).close()
    return file.read_bytes()


@pytest.fixture
def metadata(tmp_path: Path, empty_database: bytes) -> Iterator[Metadata]:
    file = tmp_path / "metadata.db"
    file.write_bytes(empty_database)
    opened = Metadata.open(file)
    yield opened
    opened.close()


@pytest.fixture
def session(metadata: Metadata) -> Iterator[Session]:
    with metadata.transaction() as opened:
        yield opened
