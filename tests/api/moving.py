"""A list in memory that changes between its pages, and a reader that reads it.

No sockets and no loop, so that thousands of schedules take seconds. What it promises is what the
service promises: a page is atomic.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from pipelines.api.before import NOTHING, Before
from pipelines.api.page import Answer, Page
from pipelines.api.reader import Reader
from pipelines.api.stitch import Taken
from pipelines.state.proof import Proof
from tests.virtual import EPOCH

T = TypeVar("T")
ANSWER = Answer("/v2/usage", b"", 200, None, {}, EPOCH, EPOCH)
Rows = list[int]
# Changes a list before its page of a number is read.
Change = Callable[[Rows, int], None]


def still(_rows: Rows, _number: int) -> None:
    """Change nothing."""


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    raise AssertionError("it waits for something")


def page(rows: Sequence[Any], offset: int, limit: int) -> Page:
    """Return the page of a list at an offset."""
    count = len(rows[offset : offset + limit])
    more = offset + limit < len(rows)
    return Page(offset, limit, count, more, offset + limit if more else None, ANSWER)


@dataclass
class Moving:
    """A list of numbers, its page size, what changes it, and everything that was read of it."""

    rows: Rows
    limit: int
    change: Change = still
    shown: list[Rows] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    superseded: int = 0  # the first page that is loaded

    async def take(self, offset: int, _step: int = 0) -> Taken:
        self.change(self.rows, len(self.asked))
        self.asked.append(offset)
        found = self.rows[offset : offset + self.limit]
        self.shown.append(found)
        keys = [b"%d" % row for row in found]
        return Taken(page(self.rows, offset, self.limit), len(self.asked) - 1, keys)

    @property
    def union(self) -> set[int]:
        """The rows that are loaded."""
        return {row for page in self.shown[self.superseded :] for row in page}

    def read(
        self, before: Before = NOTHING, *, keyed: bool = True, last: Proof | None = None
    ) -> Proof:
        reader = Reader(self.take, before, keyed, last)
        proof = drive(reader.read("id"))
        self.superseded = reader.superseded
        return proof


@dataclass
class Churn:
    """Adds and removes rows at random, so many before every page; knows which lived throughout."""

    chance: Random
    rate: float
    added: float
    first: int = 1  # the page before which it begins
    last: int = 80
    lived: set[int] = field(default_factory=set)
    following: int = 1_000_000

    def __call__(self, rows: Rows, number: int) -> None:
        if number == 0:
            self.lived = set(rows)
        if not self.first <= number <= self.last:
            return
        events = int(self.rate) + (self.chance.random() < self.rate % 1)
        for _event in range(events):
            self.happen(rows)

    def happen(self, rows: Rows) -> None:
        if self.chance.random() < self.added:
            place = self.chance.choice([0, len(rows), self.chance.randint(0, len(rows))])
            rows.insert(place, self.following)
            self.following += 1
        elif rows:
            self.lived.discard(rows.pop(self.chance.randrange(len(rows))))


@dataclass
class Shift:
    """Moves so many rows to another place before every page, up to the last."""

    chance: Random
    moves: int
    last: int

    def __call__(self, rows: Rows, number: int) -> None:
        if not 0 < number <= self.last:
            return
        for _move in range(self.moves):
            row = rows.pop(self.chance.randrange(len(rows)))
            rows.insert(self.chance.randint(0, len(rows)), row)
