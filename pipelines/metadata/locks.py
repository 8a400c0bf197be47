"""Locks between processes that say who holds them and since when.

Here: waiting, locks in files, and what `Locks` makes of both kinds. Not here: locks of a session on
PostgreSQL (server_session).
"""

import asyncio
import fcntl
import logging
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path

from pipelines.core import stop
from pipelines.core.errors import LockHeld, LockLost
from pipelines.core.files import PRIVATE_FILE, private_folder, storing
from pipelines.metadata.processes import this_command
from pipelines.metadata.server_session import ServerSession

TIMEOUT_SECONDS = 3600.0  # after which somebody who waits gives up
REPEAT_SECONDS = 30.0  # between two messages to somebody who waits
POLL_SECONDS = 0.05
SERVER_POLL_SECONDS = 0.25
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Locks:
    """Where the locks of a home are: in a folder and, on PostgreSQL, also in a session.

    A file excludes the processes of this machine, also while the server is restarted. The session
    excludes those of other machines.
    """

    folder: Path
    session: ServerSession | None = None

    def holds(self, name: str) -> bool:
        """Return whether a lock that this process took is still its own."""
        return self.session is None or self.session.holds(name)

    def require(self, name: str) -> None:
        """Raise LockLost if a lock that this process took is not its own any more."""
        if not self.holds(name):
            raise LockLost(
                f"This process lost the lock `{name}`: its session on PostgreSQL was ended, by a "
                "restart of the server or a break of the network. Nothing was published, because "
                "another process may be publishing now. Analysts still see the published version.",
                "Run the command again when the server can be reached.",
            )


@contextmanager
def hold_lock(
    locks: Locks,
    name: str,
    *,
    timeout_seconds: float = TIMEOUT_SECONDS,
    repeat_seconds: float = REPEAT_SECONDS,
) -> Iterator[bool]:
    """Hold a lock for the block; it is freed when this process dies.

    Yields whether we had to wait. While waiting, the log says who holds the lock and since when: at
    once, then every `repeat_seconds`. A lock of a session may be lost in the block: see
    `Locks.require`. Raises LockHeld after the timeout, and StorageFailed.
    """
    with _opened(locks, name) as lock:
        has_waited = False
        for pause in _attempts(lock, timeout_seconds, repeat_seconds):
            has_waited = True
            stop.raise_if_requested()
            time.sleep(pause)
        yield has_waited


@asynccontextmanager
async def hold_lock_beside_others(locks: Locks, name: str) -> AsyncIterator[bool]:
    """Hold a lock as `hold_lock` does, in an event loop: other tasks go on while this one waits."""
    with _opened(locks, name) as lock:
        has_waited = False
        for pause in _attempts(lock, TIMEOUT_SECONDS, REPEAT_SECONDS):
            has_waited = True
            await asyncio.sleep(pause)
        yield has_waited


@dataclass
class _Lock:
    """A lock that this process takes, or waits for."""

    name: str
    file: FileIO
    session: ServerSession | None
    is_in_session: bool = False

    def take(self) -> str:
        """Try to take the lock; return who holds it, empty if it is ours now."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.seek(0)
            return self.file.read().decode(errors="replace") or "held by another process"
        if self.session is None:
            return ""
        self.is_in_session = self.session.take(self.name)
        if self.is_in_session:
            return ""
        # Who waits for another machine lets others of this one try, too.
        fcntl.flock(self.file, fcntl.LOCK_UN)
        return self.session.holder(self.name)

    def describe(self) -> None:
        """Write into the file who holds the lock."""
        # On a full disk nobody learns it; we hold the lock all the same.
        with suppress(OSError):
            self.file.truncate(0)
            os.pwrite(self.file.fileno(), _description(), 0)

    def free(self) -> None:
        """Free the part that is in a session. To close the file frees the other one."""
        if self.session is not None and self.is_in_session:
            self.session.free(self.name)


@contextmanager
def _opened(locks: Locks, name: str) -> Iterator[_Lock]:
    """Open the file of a lock for the block, after which the lock is free."""
    # The file that is locked also says who holds it: a library needed a second one for that.
    path = private_folder(locks.folder) / f"{name}.holder"
    with storing(path):
        file = FileIO(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE), "r+")
    with file:
        lock = _Lock(name, file, locks.session)
        try:
            yield lock
        finally:
            lock.free()


def _attempts(lock: _Lock, timeout_seconds: float, repeat_seconds: float) -> Iterator[float]:
    """Try to take a lock; yield seconds to wait after each refusal, and end when it is ours."""
    ends = time.monotonic() + timeout_seconds
    next_message = 0.0
    pause = POLL_SECONDS if lock.session is None else SERVER_POLL_SECONDS
    while holder := lock.take():
        if time.monotonic() >= ends:
            raise LockHeld(
                f"The lock `{lock.name}` is not free after {timeout_seconds:,.0f} seconds: it is "
                f"{holder}. Nothing was changed; analysts still see the published version.",
                "Wait until that process ends, or stop it if it hangs. Then run the command again.",
            )
        if time.monotonic() >= next_message:
            logger.info("Waiting for the lock `%s`, %s.", lock.name, holder)
            next_message = time.monotonic() + repeat_seconds
        yield pause
    lock.describe()


def _description() -> bytes:
    since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"held by process {os.getpid()} (`{this_command()}`) since {since}".encode()
