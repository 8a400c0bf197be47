"""Locks between processes that say who holds them and since when."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


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
    raise NotImplementedError
