"""A list in memory whose order moves between requests, and the truth about each of its moments.

Rows with the same sort value stand in one group, and each answer shows a group in another order.
No sockets and no loop. Not here: lists whose order stands still (moving).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random

from pipelines.api.before import NOTHING, Before
from pipelines.api.page import Page
from pipelines.api.reader import Reader
from pipelines.api.stitch import Taken
from pipelines.state.proof import Proof
from tests.api.moving import ANSWER, drive

NEW = 1_000_000  # the first key of a row that is added
EVERY = 10  # requests between two additions or removals


@dataclass
class Unstable:
    """A list of keys in groups of equal sort value, its page size, and what happens to it.

    `change` is called before each request but the first, with its number. `lie` alters what a page
    says; rows that a shorter page does not show are hidden.
    """

    groups: list[list[int]]
    limit: int
    chance: Random
    change: "Callable[[Unstable, int], None]" = lambda _rows, _number: None
    lie: Callable[[Page], Page] = lambda told: told
    states: list[Counter[int]] = field(default_factory=list)  # by request
    shown: list[list[int]] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    new: "count[int]" = field(default_factory=lambda: count(NEW))
    stale: bool = True  # whether rows were added or removed since the last request

    def __len__(self) -> int:
        """Count the rows, repeated ones too."""
        return sum(len(group) for group in self.groups)

    @property
    def lived(self) -> set[int]:
        """The rows that were there from the first request to the last."""
        return set.intersection(*(set(state) for state in self.states))

    @property
    def plain(self) -> int:
        """The requests of one plain pass of the longest length that the list ever had."""
        longest = max(state.total() for state in self.states)
        return max(1, -(-longest // self.limit))

    def add(self, row: int, *, head: bool) -> None:
        """Add a row at one end, with a sort value of its own."""
        self.groups.insert(0 if head else len(self.groups), [row])
        self.stale = True

    def pop(self, place: int) -> int:
        """Take out the row at a place."""
        self.stale = True
        for at, group in enumerate(self.groups):
            if place < len(group):
                row = group.pop(place)
                if not group:
                    del self.groups[at]
                return row
            place -= len(group)
        raise IndexError(place)

    def move(self, place: int, *, head: bool) -> None:
        """Move the row at a place to one end."""
        self.add(self.pop(place), head=head)

    async def take(self, offset: int, step: int = 0) -> Taken:
        """Show the page at an offset."""
        del step
        number = len(self.asked)
        if number:
            self.change(self, number)
        if self.stale:
            state = Counter(row for group in self.groups for row in group)
            self.stale = False
        else:
            state = self.states[-1]
        self.states.append(state)
        self.asked.append(offset)
        told = self.lie(self._page(offset, found := self._rows(offset)))
        self.shown.append(found[: told.rows])
        return Taken(told, number, [b"%d" % row for row in self.shown[-1]])

    def _page(self, offset: int, found: list[int]) -> Page:
        more = offset + self.limit < len(self)
        behind = offset + self.limit if more else None
        return Page(offset, self.limit, len(found), more, behind, ANSWER)

    def _rows(self, offset: int) -> list[int]:
        found: list[int] = []
        begin, last = 0, offset + self.limit
        for group in self.groups:
            end = begin + len(group)
            if begin >= last:
                break
            if end > offset:
                found += self.chance.sample(group, min(end, last) - max(begin, offset))
            begin = end
        return found

    def read(
        self, last: Proof | None = None, before: Before = NOTHING, *, keyed: bool = True
    ) -> tuple[Reader, Proof]:
        """Read the list; return the reader and its proof."""
        reader = Reader(self.take, before, keyed, last)
        return reader, drive(reader.read("id"))


def ties(size: int, rows: int, limit: int, chance: Random) -> Unstable:
    """Return a list sorted by a field that so many rows have in common."""
    return Unstable(
        [list(range(at, min(rows, at + size))) for at in range(0, rows, size)], limit, chance
    )


def last_change(rows: int, limit: int, chance: Random, *, head: bool) -> Unstable:
    """Return a list sorted by last change, newest first or last; two rows change per request."""

    def change(unstable: Unstable, _number: int) -> None:
        for _row in range(2):
            if len(unstable):
                unstable.move(unstable.chance.randrange(len(unstable)), head=head)

    return replace(ties(1, rows, limit, chance), change=change)


def repeated(rows: int, limit: int, chance: Random, *, near: bool) -> Unstable:
    """Return a list of which one row in a hundred is there twice, near or far apart."""
    unstable = ties(1, rows, limit, chance)
    near = near or rows < 2 * limit
    for row in chance.sample(range(rows), -(-rows // 100)):
        at = unstable.groups.index([row])
        apart = chance.randint(1, limit // 2) if near else chance.randint(limit, rows)
        place = at + 1 + apart if at + 1 + apart <= len(unstable.groups) else max(0, at - apart)
        unstable.groups.insert(place, [row])
    return unstable


def repeated_and_moved(rows: int, limit: int, chance: Random, *, near: bool) -> Unstable:
    """Return a list with repeated rows; one other row moves from the unread to the read part."""
    unstable = repeated(rows, limit, chance, near=near)
    when = chance.randint(1, max(1, rows // limit - 1))

    def change(moving: Unstable, number: int) -> None:
        if number == when:
            unread = range(min(len(moving) - 1, (max(moving.asked) + moving.limit)), len(moving))
            single = [at for at in unread if moving.states[-1][moving.groups[at][0]] == 1]
            if single:
                row = moving.pop(moving.chance.choice(single))
                moving.groups.insert(moving.chance.randint(0, max(moving.asked)), [row])

    return replace(unstable, change=change)


def growing(unstable: Unstable) -> Unstable:
    """Let a row be added at each end once in ten requests."""

    def change(more: Unstable, number: int) -> None:
        if number % EVERY == 0:
            more.add(next(more.new), head=True)
            more.add(next(more.new), head=False)

    return replace(unstable, change=change)


def shrinking(unstable: Unstable) -> Unstable:
    """Let a row be removed once in ten requests."""

    def change(fewer: Unstable, number: int) -> None:
        if number % EVERY == 0 and len(fewer):
            fewer.pop(fewer.chance.randrange(len(fewer)))

    return replace(unstable, change=change)


def unrelated(rows: int, limit: int, chance: Random) -> Unstable:
    """Return a list whose every answer has new keys, which never come back."""

    def change(other: Unstable, _number: int) -> None:
        other.groups[:] = [[next(other.new)] for _row in range(rows)]
        other.stale = True

    return replace(ties(1, rows, limit, chance), change=change)
