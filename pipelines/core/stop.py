"""Notes that this process is to stop; the work looks at safe points.

Here: handlers of SIGINT, SIGTERM and SIGHUP, and how work looks, waits and is woken. Not here: what
a command says when it was stopped (`cli`).

A handler that raises is not reliable: Python drops what is raised inside `__del__`, and DuckDB what
is raised inside an import of its own. The work then went on and published.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOPPED: Final = 130  # exit code
# `timeout` and terminals send the same signal twice, at once: that is one request.
AGAIN_SECONDS: Final = 1.0
SHOW_CURSOR: Final = b"\x1b[?25h"  # which a progress bar hides
AT_ONCE: Final = b"""
Interrupted at once, by a second signal. Analysts see the version that was published last.
Run the same command again: it finishes or begins again.
"""


class _Request:
    """The request to stop this process. Signals are about a process, so there is one of it."""

    def __init__(self) -> None:
        self.noted_at: float | None = None  # monotonic seconds
        # While a person is asked, nothing else would end the question.
        self.raises = False
        self.wakers: list[Callable[[], object]] = []

    def note(self, _number: int, _frame: FrameType | None) -> None:
        """Note the request, and wake what waits. Another one a second later ends the process."""
        now = time.monotonic()
        if self.noted_at is None:
            self.noted_at = now
            for wake in tuple(self.wakers):
                wake()
        elif now - self.noted_at > AGAIN_SECONDS:
            _exit_at_once()
        if self.raises:
            raise KeyboardInterrupt


_REQUEST: Final = _Request()


def _exit_at_once() -> None:
    """End the process as a kill would: whatever it was doing, the next command goes on."""
    with suppress(OSError):  # the terminal may be gone
        message = SHOW_CURSOR + AT_ONCE if os.isatty(2) else AT_ONCE
        os.write(2, message)
    os._exit(STOPPED)


def listen() -> None:
    """Note signals from now on. A SIGHUP that is ignored (`nohup`) stays ignored.

    SIGINT is not: shells ignore it for `command &`.
    """
    for number in SIGNALS:
        is_ignored = signal.getsignal(number) == signal.SIG_IGN
        if number == signal.SIGHUP and is_ignored:
            continue
        signal.signal(number, _REQUEST.note)


def ignore() -> None:
    """Ignore signals from now on: the work is done, and the process ends by itself."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def noted(*numbers: signal.Signals) -> Iterator[None]:
    """Note signals in the block only, which must run in the main thread."""
    handlers = {number: signal.signal(number, _REQUEST.note) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        _REQUEST.noted_at = None


def is_requested() -> bool:
    """Return whether this process is to stop."""
    return _REQUEST.noted_at is not None


def raise_if_requested() -> None:
    """Raise KeyboardInterrupt if this process is to stop. Call it where stopping is safe."""
    if is_requested():
        raise KeyboardInterrupt


def note_only() -> None:
    """Leave it to the work from now on when a request is looked at."""
    _REQUEST.raises = False


@contextmanager
def raised() -> Iterator[None]:
    """Raise KeyboardInterrupt in the block as soon as a request arrives, until `note_only`."""
    before = _REQUEST.raises
    # First this, then the look: a request between the two is then raised by its handler.
    _REQUEST.raises = True
    try:
        raise_if_requested()
        yield
    finally:
        _REQUEST.raises = before


@contextmanager
def woken(wake: Callable[[], object]) -> Iterator[None]:
    """Call `wake` when a request arrives in the block, or was there before it.

    It is called between any two instructions, so it must not raise.
    """
    _REQUEST.wakers.append(wake)
    try:
        if is_requested():
            wake()
        yield
    finally:
        _REQUEST.wakers.remove(wake)
