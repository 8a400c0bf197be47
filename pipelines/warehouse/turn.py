"""One reader of a list at a time: a second run waits, and uses what the first one read.

A lock, which is freed when its process dies, with -9 too (state/locks).
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

from pipelines.clock import Clock
from pipelines.state.locks import FOREVER, Locks

SECONDS_BETWEEN_LOOKS = 0.2


@dataclass(frozen=True)
class Turns:
    """The turns to read the lists of one home; `waiting` is told once when another run has it."""

    locks: Locks
    clock: Clock
    waiting: Callable[[str], None]

    @asynccontextmanager
    async def taken(self, connection: str, stream: str) -> AsyncIterator[None]:
        """Wait, however long, for the turn to read a list."""
        lock = self.locks.lock(_name(connection, stream))
        waited = False
        while not lock.acquire():
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
        names = {_name(*each): each[1] for each in lists}
        with ExitStack() as turns:
            for name, stream in sorted(names.items()):
                lock = self.locks.lock(name)
                if not lock.acquire():
                    self.waiting(f"{stream}: another run is reading it: waiting for it")
                    lock.acquire(FOREVER)
                turns.callback(lock.release)
            yield


def _name(connection: str, stream: str) -> str:
    return f"scan-{re.sub(r'[^A-Za-z0-9_-]', '_', connection)}-{stream}"
