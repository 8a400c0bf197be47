"""Building the work database once more, in a new file that takes the old one's place.

The swap is one rename: whatever is killed, there is the old file or the new one, each whole. Not
here: what is folded into it (run.replay).
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from pipelines.warehouse.database import SPILL, Work
from pipelines.warehouse.lake import Lake

NAME = "rebuild.duckdb"
DAY = timedelta(days=1)
# Ours alone: a person may have moved a work database away under another name.
FOLDS = "fold-*.duckdb*"
LEFT = (f"{NAME}*", FOLDS, "base.part.duckdb*", "warehouse.duckdb.part", SPILL)


@contextmanager
def rebuilding(
    work: Work | Lake, begin: Callable[[Path], object]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to a new database, alone; swap it in where the block ends well.

    `begin` may put a file to begin with at the path that it is given.
    """
    fresh = work.beside(NAME)
    with work.alone():
        sweep(work)
        try:
            begin(fresh.file)
            with fresh.connected() as database:
                yield database
                database.execute("CHECKPOINT")
            work.swap(fresh)
        finally:
            _remove(fresh.file)


def sweep(work: Work | Lake) -> None:
    """Remove what killed runs left beside the work database; only for who is alone."""
    for pattern in LEFT:
        for left in work.home.work.glob(pattern):
            _remove_any(left)


def sweep_old(work: Work | Lake, now: datetime) -> None:
    """Remove what killed folds and readers of a lake left on this machine, a day later.

    Nobody keeps readers out, and who is alone with a lake may be on another machine.
    """
    left = [*work.home.work.glob(FOLDS), *work.home.work.glob(f"{SPILL}-*")]
    for each in left:
        with suppress(FileNotFoundError):  # another process of this machine removed it
            if datetime.fromtimestamp(each.stat().st_mtime, UTC) < now - DAY:
                _remove_any(each)


def _remove_any(left: Path) -> None:
    shutil.rmtree(left) if left.is_dir() else left.unlink()


def _remove(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.with_name(f"{file.name}.wal").unlink(missing_ok=True)
