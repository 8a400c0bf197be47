"""Locks between processes that say who holds them and since when."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import filelock
import msgspec

from pipelines.core.errors import LockHeld, StorageFailed
from pipelines.core.files import PRIVATE_FILE, private_folder
from pipelines.core.text import printable

REPEAT_SECONDS = 30.0  # between two messages to somebody who waits
POLL_SECONDS = 0.05


class Holder(msgspec.Struct, frozen=True):
    """The process that holds a lock, as it wrote it beside the lock file."""

    process_id: int
    command: str
    since: datetime


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
    file = folder / f"{name}.lock"
    lock = filelock.FileLock(file, mode=PRIVATE_FILE, poll_interval=POLL_SECONDS)
    try:
        has_waited = _acquire(lock, file, timeout_seconds, on_wait)
    except OSError as error:
        raise _storage_failed(file, error) from error
    try:
        _write_holder(file)
        yield has_waited
    finally:
        _holder_file(file).unlink(missing_ok=True)
        lock.release()


def _acquire(
    lock: filelock.BaseFileLock, file: Path, timeout_seconds: float, on_wait: Callable[[str], None]
) -> bool:
    """Wait for a lock; return whether it was held by another process."""
    ends = time.monotonic() + timeout_seconds
    has_waited = False
    attempt_seconds = 0.0
    while True:
        try:
            lock.acquire(timeout=attempt_seconds)
        except filelock.Timeout:
            holder = _describe_holder(file)
            attempt_seconds = min(REPEAT_SECONDS, ends - time.monotonic())
            if attempt_seconds <= 0:
                raise _lock_held(file, holder, timeout_seconds) from None
            on_wait(f"Waiting for the lock `{file.stem}`, {holder}.")
            has_waited = True
        else:
            return has_waited


def _holder_file(file: Path) -> Path:
    return file.with_suffix(".holder")


def _write_holder(file: Path) -> None:
    """Say who holds a lock: nothing can be written into the lock file itself."""
    command = " ".join((Path(sys.argv[0]).name, *sys.argv[1:]))
    holder = Holder(os.getpid(), command, datetime.now(UTC))
    part = _holder_file(file).with_suffix(".part")
    try:
        with open(part, "wb", opener=_open_private) as target:
            target.write(msgspec.json.encode(holder))
        part.replace(_holder_file(file))
    except OSError as error:
        raise _storage_failed(file, error) from error


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE_FILE)


def _describe_holder(file: Path) -> str:
    """Return who holds a lock, as far as that is known."""
    with suppress(OSError, msgspec.DecodeError):
        holder = msgspec.json.decode(_holder_file(file).read_bytes(), type=Holder)
        since = f"{holder.since:%Y-%m-%d %H:%M:%S} UTC"
        return f"held by process {holder.process_id} (`{printable(holder.command)}`) since {since}"
    return "held by another process"


def _lock_held(file: Path, holder: str, timeout_seconds: float) -> LockHeld:
    return LockHeld(
        f"The lock `{file.stem}` is not free after {timeout_seconds:,.0f} seconds: it is {holder}. "
        "Nothing was changed; analysts still see the published version.",
        "Wait until that process ends, or end it if it hangs. Then run the command again.",
    )


def _storage_failed(file: Path, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"The lock file {file} cannot be used: {error.strerror}. Nothing was changed; analysts "
        "still see the published version.",
        "Make room or correct the permissions, then run the command again.",
    )
