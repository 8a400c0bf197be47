"""Locks between processes that say who holds them and since when."""

import asyncio
import fcntl
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path

from pipelines.core import stop
from pipelines.core.errors import LockHeld
from pipelines.core.files import PRIVATE_FILE, private_folder, storing
from pipelines.core.text import printable

TIMEOUT_SECONDS = 3600.0  # after which somebody who waits gives up
REPEAT_SECONDS = 30.0  # between two messages to somebody who waits
POLL_SECONDS = 0.05
logger = logging.getLogger(__name__)


@contextmanager
def hold_lock(
    folder: Path,
    name: str,
    *,
    timeout_seconds: float = TIMEOUT_SECONDS,
    repeat_seconds: float = REPEAT_SECONDS,
) -> Iterator[bool]:
    """Hold a lock (a file under `folder`) for the block; the operating system frees it on death.

    Yields whether we had to wait. While waiting, the log says who holds the lock and since when: at
    once, then every `repeat_seconds`. Raises LockHeld after the timeout.
    """
    with _opened(folder, name) as lock:
        has_waited = False
        for _refused in _attempts(lock, name, timeout_seconds, repeat_seconds):
            has_waited = True
            stop.raise_if_requested()
            time.sleep(POLL_SECONDS)
        yield has_waited


@asynccontextmanager
async def hold_lock_beside_others(folder: Path, name: str) -> AsyncIterator[bool]:
    """Hold a lock as `hold_lock` does, in an event loop: other tasks go on while this one waits."""
    with _opened(folder, name) as lock:
        has_waited = False
        for _refused in _attempts(lock, name, TIMEOUT_SECONDS, REPEAT_SECONDS):
            has_waited = True
            await asyncio.sleep(POLL_SECONDS)
        yield has_waited


def _opened(folder: Path, name: str) -> FileIO:
    """Open the file of a lock. Closing it frees the lock."""
    # The file that is locked also says who holds it: a library needed a second one for that.
    file = private_folder(folder) / f"{name}.holder"
    with storing(file):
        return FileIO(os.open(file, os.O_RDWR | os.O_CREAT, PRIVATE_FILE), "r+")


def _attempts(
    lock: FileIO, name: str, timeout_seconds: float, repeat_seconds: float
) -> Iterator[None]:
    """Try to take a lock; yield after each refusal, and end when it is ours."""
    ends = time.monotonic() + timeout_seconds
    next_message = 0.0
    while not _is_taken(lock):
        lock.seek(0)
        holder = lock.read().decode(errors="replace") or "held by another process"
        if time.monotonic() >= ends:
            raise LockHeld(
                f"The lock `{name}` is not free after {timeout_seconds:,.0f} seconds: it is "
                f"{holder}. Nothing was changed; analysts still see the published version.",
                "Wait until that process ends, or stop it if it hangs. Then run the command again.",
            )
        if time.monotonic() >= next_message:
            logger.info("Waiting for the lock `%s`, %s.", name, holder)
            next_message = time.monotonic() + repeat_seconds
        yield
    # On a full disk nobody learns who holds the lock; we do all the same.
    with suppress(OSError):
        lock.truncate(0)
        os.pwrite(lock.fileno(), _description(), 0)


def _is_taken(lock: FileIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _description() -> bytes:
    # Without further words: they may be something that is to be erased.
    command = printable(" ".join((Path(sys.argv[0]).name, *sys.argv[1:2])))
    since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"held by process {os.getpid()} (`{command}`) since {since}".encode()
