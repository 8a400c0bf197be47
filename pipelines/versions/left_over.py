"""Temporary files that killed processes left in a home.

Who writes one holds the lock of its place, or the file or folder itself (`write_durably`, copies of
readers, pages that a browser prints).
"""

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from pipelines.config.home import Home
from pipelines.core.errors import LockHeld, StorageFailed
from pipelines.core.files import is_left_over, remove
from pipelines.metadata.locks import Locks, hold_lock

# By lock; without one, the process holds each file. Age cannot tell what was left: a copy on a slow
# disk takes long. The operating system frees a lock when its process dies. Sandboxes and Dagster
# keep their own files.
PLACES: Final = {
    "build": (
        ".warehouse.duckdb.part",
        ".books.duckdb.part",
        "versions/.v[0-9]*",
        "books/.v[0-9]*",
        "closes/*/.*.part",
        "archive/*/*/.*.part",
        "archive/*/*/.*.part.open",  # of `erase`
    ),
    "export": ("exports/.*.part", "exports/.*.before"),
    "": (
        "versions/.v-copy-*",
        "reports/.*.part",
        "statements/.*.part",
        "statements/*/.*.part",
        "config/.*.part",
        "locks/*.process",
    ),
}
logger = logging.getLogger(__name__)


def left_over(home: Home, *, held: str = "") -> Iterator[Path]:
    """Yield what no living process writes; `held` is a lock that the caller holds.

    Each is yielded while its lock is held, so that it may be deleted.
    """
    for name, patterns in PLACES.items():
        with ExitStack() as stack:
            try:
                # `flock` would refuse a lock that the caller holds, too. These files are those of
                # this machine.
                if name not in {"", held}:
                    locks = Locks(home.locks)
                    stack.enter_context(hold_lock(locks, name, timeout_seconds=0))
            except LockHeld:
                continue
            for pattern in patterns:
                yield from filter(is_left_over, sorted(home.root.glob(pattern)))


def remove_left_over(home: Home, *, held: str) -> None:
    """Delete what killed processes left. `held` is a lock that the caller holds.

    What cannot be deleted is logged, and the caller goes on.
    """
    for path in left_over(home, held=held):
        try:
            remove(path)
            logger.info("Deleted %s, which a killed process had left.", path)
        except StorageFailed as error:
            logger.warning("%s %s", error, error.remedy)
