"""A listing: how many records a list has now, and any stretch of them as encoded JSON.

Here: the value that paging reads from, and the bounded cache of encoded blocks.
Not here: limits and envelopes (paging), what the records are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

BLOCK = 250  # records written at a time


@dataclass(frozen=True)
class Listing:
    """``count`` records; ``rows(start, stop)`` gives those that exist in [start, stop) as JSON.

    ``write(start, stop)`` writes records that need not exist yet, None where there can be no more.
    """

    count: int
    rows: Callable[[int, int], list[bytes]]
    write: Callable[[int, int], list[bytes]] | None = None

    def now(self) -> "Listing":
        """Give the list as the present request sees it: always the same."""
        return self


class Pageable(Protocol):
    """What pages are read from: a list that stays as it is, or one that changes meanwhile."""

    @property
    def count(self) -> int:
        """How many records there are."""

    @property
    def rows(self) -> Callable[[int, int], list[bytes]]:
        """Those that exist in [start, stop), as JSON."""

    def now(self) -> Listing:
        """Give the list as the present request sees it."""


def listing(count: int, write: Callable[[int, int], list[bytes]], keep: int) -> Listing:
    """Make a listing that writes blocks when they are asked for and keeps the last ``keep``."""

    @lru_cache(maxsize=keep)
    def block(number: int) -> list[bytes]:
        return write(number * BLOCK, min(count, (number + 1) * BLOCK))

    def rows(start: int, stop: int) -> list[bytes]:
        stop = min(stop, count)
        if start >= stop:
            return []
        first = start // BLOCK
        found = [row for number in range(first, (stop - 1) // BLOCK + 1) for row in block(number)]
        return found[start - first * BLOCK : stop - first * BLOCK]

    return Listing(count, rows, write)


def each(record: Callable[[int], bytes]) -> Callable[[int, int], list[bytes]]:
    """Turn the writer of one record into the writer of a block."""
    return lambda start, stop: [record(index) for index in range(start, stop)]
