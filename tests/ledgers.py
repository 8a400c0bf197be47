"""Ledgers of tests' own: copies of one without a row, since making its tables costs 20 ms.

A file each, or a PostgreSQL database each where `make test-distributed` says so. Not here: that a
ledger is made where there is none (tests/state/test_database, every sync).
"""

import importlib
import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Engine

from pipelines.state import database

NAME = "state.sqlite"
SHARED = os.environ.get("TEST_STATE") == "postgresql"


@cache
def _empty() -> bytes:
    with TemporaryDirectory() as folder:
        database.connect(Path(folder)).dispose()
        return (Path(folder) / NAME).read_bytes()


@cache
def _template() -> str:
    """Return the URL of a database with the tables and without a row, to which nobody connects."""
    url = str(importlib.import_module("tests.distributed.places").database())
    database.connect(Path(), url).dispose()
    return url


def address() -> str | None:
    """Return what the setting `state` says of a new ledger: where it is; None: in its folder."""
    if not SHARED:
        return None
    places = importlib.import_module("tests.distributed.places")
    return str(places.copy(_template()))


def opened(folder: Path) -> Engine:
    """Open a new ledger in a folder."""
    url = address()
    return in_file(folder) if url is None else database.connect(folder, url)


def in_file(folder: Path) -> Engine:
    """Open a new ledger in a folder, whatever the other tests have: for what only a file has."""
    (folder / NAME).write_bytes(_empty())
    return database.connect(folder)
