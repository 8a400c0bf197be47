"""Ledgers of tests' own: copies of one without a row, since making its tables costs 20 ms.

Not here: that a ledger is made where there is none (tests/state/test_database, every sync).
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Engine

from pipelines.state import database

NAME = "state.sqlite"


@cache
def _empty() -> bytes:
    with TemporaryDirectory() as folder:
        database.connect(Path(folder)).dispose()
        return (Path(folder) / NAME).read_bytes()


def opened(folder: Path) -> Engine:
    """Open a new ledger in a folder."""
    (folder / NAME).write_bytes(_empty())
    return database.connect(folder)
