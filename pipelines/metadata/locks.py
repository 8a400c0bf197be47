"""Locks between processes that say who holds them and since when."""

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from pipelines.core.errors import LockHeld, StorageFailed
from pipelines.core.files import PRIVATE_FILE, private_folder
from pipelines.core.text import printable

REPEAT_SECONDS = 30.0  # between two messages to somebody who waits
POLL_SECONDS = 0.05
LONGEST_TEXT = 1000  # bytes that say who holds a lock


@contextmanager
def hold_lock(
    folder: Path,
    name: str,
    *,
    timeout_seconds: float = 3600,
    on_wait: Callable[[str], None] = lambda _message: None,
    repeat_seconds: float = REPEAT_SECONDS,
) -> Iterator[bool]:
    """Hold a lock (a file under `folder`) for the block; the operating system frees it on death.

    Yields whether we had to wait. While waiting, `on_wait` gets a sentence that says who holds the
    lock and since when: at once, then every `repeat_seconds`. Raises LockHeld after the timeout.
    """
    file = private_folder(folder) / f"{name}.holder"
    next_message, has_waited = 0.0, False
    with ExitStack() as stack:
        try:
            lock = os.open(file, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
            stack.callback(os.close, lock)
            for holder in _others_that_hold(lock, name, timeout_seconds):
                has_waited = True
                if time.monotonic() >= next_message:
                    on_wait(f"Waiting for the lock `{name}`, {holder}.")
                    next_message = time.monotonic() + repeat_seconds
        except OSError as error:
            raise StorageFailed(
                f"The lock file {file} cannot be used: {error.strerror}. Nothing was changed; "
                "analysts still see the published version.",
                "Make room or correct the permissions, then run the command again.",
            ) from error
        with suppress(OSError):  # a full disk: nobody learns who holds the lock, we do all the same
            os.ftruncate(lock, 0)
            os.pwrite(lock, _description(), 0)
        yield has_waited


def _others_that_hold(lock: int, name: str, timeout_seconds: float) -> Iterator[str]:
    """Lock an open file; yield who holds it again and again until it is free. Raises LockHeld."""
    ends = time.monotonic() + timeout_seconds
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        holder = os.pread(lock, LONGEST_TEXT, 0).decode(errors="replace")
        holder = holder or "held by another process"
        if time.monotonic() >= ends:
            raise LockHeld(
                f"The lock `{name}` is not free after {timeout_seconds:,.0f} seconds: it is "
                f"{holder}. Nothing was changed; analysts still see the published version.",
                "Wait until that process ends, or end it if it hangs. Then run the command again.",
            )
        yield holder
        time.sleep(POLL_SECONDS)


def _description() -> bytes:
    # Without further words: they may be something that is to be erased.
    command = printable(" ".join((Path(sys.argv[0]).name, *sys.argv[1:2])))
    since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"held by process {os.getpid()} (`{command}`) since {since}".encode()
