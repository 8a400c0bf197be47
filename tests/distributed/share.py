"""A share of a processor for groups of processes: each is held to it like a small machine.

Here: looking at what a group has used, and stopping it (SIGSTOP) until its share allows more; any
Linux does, without root. Not here: whose groups these are (stack), what is compared (rehearsal).
"""

import os
import signal
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.distributed import costs

BETWEEN_LOOKS = 0.04  # seconds: some ticks, by which the system tells what was used
BETWEEN_LISTS = 0.2  # seconds: a new child counts from its begin, but is seen that much later
KEPT = 0.1  # seconds whose share may be used later: a machine saves nothing up


@dataclass
class Group:
    """A group of processes; what it has used, and what its share leaves to it."""

    number: int  # its leader's process
    share: float  # of one processor
    members: Sequence[int] = ()
    used: float = field(default=0.0, init=False)  # processor seconds, of ended children too
    left: float = field(default=0.0, init=False)  # processor seconds; a debt below zero
    stopped: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Begin to count: what was used before is free."""
        self.used = self._used()

    def look(self, passed: float) -> None:
        """Stop it where it used more than its share of the time, until that has paid for it."""
        used = self._used()
        self.left = min(self.left + passed * self.share - (used - self.used), KEPT * self.share)
        self.used = used
        if self.stopped == (self.left > 0):
            self._tell(stopped=not self.stopped)

    def free(self) -> None:
        """Let it go on, whatever it has used."""
        self._tell(stopped=False)

    def _used(self) -> float:
        """Return what it has used; at most once what a child had that is just becoming history."""
        return max(self.used, sum(map(costs.used, self.members)))

    def _tell(self, *, stopped: bool) -> None:
        self.stopped = stopped
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(self.number, signal.SIGSTOP if stopped else signal.SIGCONT)


@contextmanager
def limited(groups: Collection[int], share: float) -> Iterator[None]:
    """Hold each of some groups to a share of one processor until the end of the block."""
    listed, done = _listed(), threading.Event()
    held = [Group(each, share, listed.get(each, ())) for each in groups]
    with ThreadPoolExecutor(1, "share") as beside:
        holding = beside.submit(_hold, held, done)
        try:
            yield
        finally:
            done.set()
    holding.result()  # raises what went wrong with it: then nobody was held


def _hold(groups: Collection[Group], done: threading.Event) -> None:
    before = listed = time.monotonic()
    try:
        while not done.wait(BETWEEN_LOOKS):
            now = time.monotonic()
            if now - listed > BETWEEN_LISTS:
                listed = now
                _renew(groups)
            for group in groups:
                group.look(now - before)
            before = now
    finally:
        for group in groups:
            group.free()


def _renew(groups: Collection[Group]) -> None:
    """Find the members of each anew."""
    listed = _listed()
    for group in groups:
        group.members = listed.get(group.number, ())


def _listed() -> Mapping[int, Sequence[int]]:
    """Return the processes of every group of this machine."""
    found: dict[int, list[int]] = {}
    for process in costs.processes():
        with suppress(ProcessLookupError):
            found.setdefault(os.getpgid(process), []).append(process)
    return found
