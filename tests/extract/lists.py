"""A list in memory that changes between requests, the truth about it, and what is judged."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random

import numpy as np

from pipelines.core.proof import ListTraits, Proof, Ranges
from pipelines.extract.pages import NextRequests, Page, ReadingEnded
from pipelines.extract.read_list import read_list

NEW = 10_000_000  # the first key of a row that is added


@dataclass(eq=False)
class Row:
    """A row: its key, what else it says, and how many rows share its place in the order."""

    key: int | None
    content: int = 0

    @property
    def values(self) -> list[int]:
        """The row as `Page.values` has it."""
        content = self.content if self.key is None else (self.key, self.content)
        return [hash((content, 7)) % 2**64, 0 if self.key is None else self.key + 1]


Change = Callable[["Model", int], None]


@dataclass
class Model:
    """A list of groups of rows; the rows of a group come in another order at each request.

    `change` is called before each request but the first. `lie` alters an answer.
    """

    groups: list[list[Row]]
    limit: int
    chance: Random
    change: Change = lambda _model, _number: None
    lie: Callable[[Page, "Model"], Page] = lambda page, _model: page
    contents: int | None = None  # without a key: how many contents there are; 0: one for each row
    added: set[Row] = field(default_factory=set)
    lengths: list[int] = field(default_factory=list)
    shown: dict[int, list[Row]] = field(default_factory=dict)
    asked: list[tuple[int, str]] = field(default_factory=list)
    new: Iterator[int] = field(default_factory=lambda: count(NEW))

    def __len__(self) -> int:
        return sum(map(len, self.groups))

    @property
    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group]

    @property
    def plain(self) -> int:
        return max(1, -(-max(self.lengths) // self.limit))

    @property
    def keyed(self) -> bool:
        return self.contents is None

    def add(self, at: int) -> None:
        """Add a new row before the group at a place of `groups`."""
        if self.contents is None:
            row = Row(next(self.new), self.chance.randrange(1000))
        else:
            row = Row(None, self.chance.randrange(self.contents or 2**62))
        self.added.add(row)
        self.groups.insert(at, [row])

    def pop(self, place: int) -> Row:
        for at, group in enumerate(self.groups):
            if place < len(group):
                row = group.pop(place)
                if not group:
                    del self.groups[at]
                return row
            place -= len(group)
        raise IndexError(place)

    def move(self, place: int, at: int, change: int = 0) -> None:
        row = self.pop(place)
        row.content += change
        self.groups.insert(at, [row])

    def answer(self, ask: NextRequests, number: int) -> Page:
        if self.asked:
            self.change(self, len(self.asked))
        (offset, purpose), limit = ask.request, self.limit
        rows = self._rows(offset, limit)
        self.lengths.append(len(self))
        self.asked.append((offset, purpose))
        values = np.array([row.values for row in rows], np.uint64).reshape(-1, 2)
        page = Page(number, ask.request, ("id",), values, limit, offset + limit < len(self))
        page = self.lie(page, self)
        self.shown[number] = rows[: len(page)]
        return page

    def _rows(self, offset: int, limit: int) -> list[Row]:
        found: list[Row] = []
        begin, last = 0, offset + limit
        for group in self.groups:
            end = begin + len(group)
            shown = min(end, last) - max(begin, offset)
            if begin >= last:
                break
            if shown > 0:
                found += self.chance.sample(group, shown) if len(group) > 1 else group
            begin = end
        return found

    def again(self) -> "Model":
        """Return the list as the next scan meets it."""
        return replace(self, added=set(), lengths=[], shown={}, asked=[])


def drive(
    answer: Callable[[NextRequests, int], Page],
    traits: ListTraits | None = None,
    key: str | None = None,
    stop: int = 10**9,
    passes: int = 1,
) -> Proof:
    """Read a list to the end; `answer` gets each request with its number, up to number `stop`."""
    steps = read_list(key, traits or ListTraits(), passes)
    try:
        ask = next(steps)
        for number in count(1):
            late = ReadingEnded("time is up")
            ask = steps.throw(late) if number > stop else steps.send(answer(ask, number))
    except StopIteration as end:
        proof: Proof = end.value
        return proof
    raise AssertionError


@dataclass
class Truth:
    """What a proof claims, compared with the model."""

    model: Model
    proof: Proof

    def rows(self, ranges: dict[int, Ranges]) -> list[Row]:
        shown = self.model.shown
        return [row for page in ranges for at, end in ranges[page] for row in shown[page][at:end]]

    def _counted(self, rows: Iterable[Row]) -> Counter[int | None]:
        return Counter(row.key if self.model.keyed else row.content for row in rows)

    def _expected(self, rows: Iterable[Row]) -> Counter[int | None]:
        """Count rows as they should be loaded: of a key, one."""
        counted = self._counted(rows)
        return Counter(dict.fromkeys(counted, 1)) if self.model.keyed else counted

    def _there(self) -> list[Row]:
        """Return the rows that were there throughout."""
        return [row for row in self.model.rows if row not in self.model.added]

    def lost(self) -> int:
        """Return how many rows that were there throughout are not loaded."""
        there = self._expected(self._there())
        return (there - self._counted(self.rows(self.proof.used))).total()

    def doubled(self) -> int:
        """Return how many rows are loaded more often than there were.

        Of equal rows without a key, one may be shown twice and another one never.
        """
        shown = {row for rows in self.model.shown.values() for row in rows}
        ever = self._expected(shown.union(self._there()))
        return (self._counted(self.rows(self.proof.used)) - ever).total()

    def problems(self) -> list[str]:
        """Return what is not as the proof says."""
        proof = self.proof
        faults = {
            f"{self.lost()} rows lost under COMPLETE": proof.complete and self.lost(),
            f"{self.doubled()} rows doubled": self.doubled(),
            "rows": proof.rows != len(self.rows(proof.used)),
            "not_seen": proof.not_seen is not None and (proof.complete or proof.not_seen < 0),
            "reason": proof.complete == bool(proof.reason),
        }
        return [name for name, is_fault in faults.items() if is_fault]
