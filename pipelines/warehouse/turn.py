"""One reader of a list at a time: a second run waits, and uses what the first one read.

A lock file, which the system frees when its process dies, with -9 too.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import filelock

from pipelines.clock import Clock

SECONDS_BETWEEN_LOOKS = 0.2


@dataclass(frozen=True)
class Turns:
    """The turns to read the lists of one home; `waiting` is told once when another run has it."""

    folder: Path
    clock: Clock
    waiting: Callable[[str], None]

    @asynccontextmanager
    async def taken(self, connection: str, stream: str) -> AsyncIterator[None]:
        """Wait, however long, for the turn to read a list."""
        lock = filelock.FileLock(self._file(connection, stream))
        waited = False
        while not _acquired(lock):
            if not waited:
                self.waiting(f"{stream}: another run is reading it: waiting for it")
            waited = True
            await self.clock.sleep(SECONDS_BETWEEN_LOOKS)
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def all_taken(self, lists: Iterable[tuple[str, str]]) -> Iterator[None]:
        """Wait, however long, until nobody reads any of the lists; keep them from beginning."""
        files = {self._file(*each): each[1] for each in lists}
        with ExitStack() as turns:
            for file, stream in sorted(files.items()):
                lock = filelock.FileLock(file)
                if not _acquired(lock):
                    self.waiting(f"{stream}: another run is reading it: waiting for it")
                    lock.acquire()
                turns.callback(lock.release)
            yield

    def _file(self, connection: str, stream: str) -> Path:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", connection)
        return self.folder / f"scan-{plain}-{stream}.lock"


def _acquired(lock: filelock.BaseFileLock) -> bool:
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        return False
    return True
