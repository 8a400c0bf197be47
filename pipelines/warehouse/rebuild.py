"""Building the work database once more, in a new file that takes the old one's place.

The swap is one rename: whatever is killed, there is the old file or the new one, each whole. Not
here: what is folded into it (run.replay).
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import duckdb

from pipelines.errors import WarehouseDamaged
from pipelines.warehouse.database import Work

NAME = "rebuild.duckdb"
# Ours alone: a person may have moved a work database away under another name.
LEFT = (f"{NAME}*", "base.part.duckdb*", "warehouse.duckdb.part", "spill")


@contextmanager
def rebuilding(work: Work, begin: Callable[[Path], object]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to a new database, alone; swap it in where the block ends well.

    `begin` may put a file to begin with at the path that it is given.
    """
    fresh = replace(work, name=NAME)
    with work.alone():
        sweep(work)
        try:
            begin(fresh.file)
            with fresh.connected() as database:
                yield database
                database.execute("CHECKPOINT")
            _swap(work, fresh.file)
        finally:
            _remove(fresh.file)


def _swap(work: Work, fresh: Path) -> None:
    """Put the new file in the old one's place, whose log must not be applied to it."""
    with suppress(WarehouseDamaged):
        if work.file.exists():
            work.connected().close()  # what its log holds goes into the file
    _log(work.file).unlink(missing_ok=True)
    fresh.replace(work.file)
    folder = os.open(work.file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def sweep(work: Work) -> None:
    """Remove what killed runs left beside the work database; only for who is alone."""
    for pattern in LEFT:
        for left in work.home.work.glob(pattern):
            shutil.rmtree(left) if left.is_dir() else left.unlink()


def _remove(file: Path) -> None:
    file.unlink(missing_ok=True)
    _log(file).unlink(missing_ok=True)


def _log(file: Path) -> Path:
    return file.with_name(f"{file.name}.wal")
