"""Locks between processes that say who holds them and since when."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import filelock

from pipelines.core.errors import LockHeld, StorageFailed
from pipelines.core.files import PRIVATE_FILE, private_folder
from pipelines.core.text import printable

REPEAT_SECONDS = 30.0  # between two messages to somebody who waits
POLL_SECONDS = 0.05
UNKNOWN = "held by another process"


@contextmanager
def hold_lock(
    folder: Path,
    name: str,
    *,
    timeout_seconds: float = 3600,
    on_wait: Callable[[str], None] = lambda _message: None,
) -> Iterator[bool]:
    """Hold a lock (a file under `folder`) for the block; the operating system frees it on death.

    Yields whether we had to wait. While waiting, `on_wait` gets a sentence that says who holds the
    lock and since when: at once and then every 30 seconds. Raises LockHeld after the timeout.
    """
    private_folder(folder)
    file, holder = folder / f"{name}.lock", folder / f"{name}.holder"
    lock = filelock.FileLock(file, mode=PRIVATE_FILE, poll_interval=POLL_SECONDS)
    try:
        has_waited = _acquire(lock, holder, timeout_seconds, on_wait)
        # Beside it: nothing can be written into the lock file itself.
        command = printable(" ".join((Path(sys.argv[0]).name, *sys.argv[1:])))
        since = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        holder.write_text(f"held by process {os.getpid()} (`{command}`) since {since}")
    except OSError as error:
        lock.release()
        raise _storage_failed(file, error) from error
    try:
        yield has_waited
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _acquire(
    lock: filelock.BaseFileLock,
    holder: Path,
    timeout_seconds: float,
    on_wait: Callable[[str], None],
) -> bool:
    """Wait for a lock; return whether it was held by another process."""
    ends = time.monotonic() + timeout_seconds
    has_waited = False
    attempt_seconds = 0.0
    while True:
        try:
            lock.acquire(timeout=attempt_seconds)
        except filelock.Timeout:
            held = _describe_holder(holder)
            attempt_seconds = min(REPEAT_SECONDS, ends - time.monotonic())
            if attempt_seconds <= 0:
                raise LockHeld(
                    f"The lock `{holder.stem}` is not free after {timeout_seconds:,.0f} seconds: "
                    f"it is {held}. Nothing was changed; analysts still see the published version.",
                    "Wait until that process ends, or end it if it hangs. Then run the command "
                    "again.",
                ) from None
            on_wait(f"Waiting for the lock `{holder.stem}`, {held}.")
            has_waited = True
        else:
            return has_waited


def _describe_holder(holder: Path) -> str:
    """Return who holds a lock, as far as that is known."""
    with suppress(OSError, ValueError):
        return holder.read_text() or UNKNOWN
    return UNKNOWN


def _storage_failed(file: Path, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"The lock file {file} cannot be used: {error.strerror}. Nothing was changed; analysts "
        "still see the published version.",
        "Make room or correct the permissions, then run the command again.",
    )
