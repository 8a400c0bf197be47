"""Lists that change while they are read: another order at each request, rows that are there twice.

Here: a list as one request sees it, and the faults that change it. Its places are numbered after
all faults, so that offsets count the rows of this view. Not here: changes at a rate (changes), the
envelope.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from random import Random

from sandbox.data.listing import Listing
from sandbox.faults.kind import Fault, Kind, Stage

FIRST, SAME, OTHER = range(3)  # a record's own row, one more like it, one more with other values
WITHOUT_END = 10**9  # places of a list whose pages never end
Row = tuple[int, int]  # the number of a record, and which of its rows


@dataclass
class Memory:
    """The state of a list between requests: the number of requests, and its last changes."""

    requests: int = 0
    changed: dict[int, int] = field(default_factory=dict)


@dataclass
class View:
    """The rows of a list as one request sees them.

    The list had ``size`` records at first. ``change`` gives a record a higher revision, ``move``
    moves it for good. ``told`` collects the records that a scan reports, by kind.
    """

    name: str
    size: int
    rows: list[Row]
    memory: Memory
    change: Callable[[int], None]
    move: Callable[[int, int], None]
    told: dict[str, set[int]] = field(default_factory=dict)
    hidden: range = range(0)
    short: bool = False
    endless: bool = False
    renamed: bool = False

    @property
    def chance(self) -> Random:
        """Random numbers for this request: the same in the same request to the same list."""
        return Random(f"{self.name}/{self.memory.requests}")  # noqa: S311 - repeatable

    def tell(self, kind: str, numbers: Iterable[int]) -> None:
        """Add records that a scan reports under a kind."""
        self.told.setdefault(kind, set()).update(numbers)

    def listing(self, write: Callable[[Row], bytes]) -> Listing:
        """Return the view as a list, its rows written by ``write``."""
        named = self._renaming(write) if self.renamed else write
        count = WITHOUT_END if self.endless and self.rows else len(self.rows)

        def rows(start: int, stop: int) -> list[bytes]:
            if self.short and start <= len(self.rows) // 2 < stop < count:
                stop = (start + stop) // 2
            places = range(start, min(stop, count))
            shown = (self.rows[place % len(self.rows)] for place in places)
            return [named(row) for row in shown if row[0] not in self.hidden]

        return Listing(count, rows)

    def _renaming(self, write: Callable[[Row], bytes]) -> Callable[[Row], bytes]:
        chance = self.chance

        def renamed(row: Row) -> bytes:
            record = write(row)
            key = record.split(b'"', 4)[3]
            new = f"{chance.getrandbits(4 * len(key)):0{len(key)}x}"
            return record.replace(key, new.encode(), 1)

        return renamed


def show(view: View, faults: Iterable[Fault]) -> None:
    """Apply faults to a view, in the order of the catalogue."""
    view.memory.requests += 1
    for fault in sorted(faults, key=lambda one: FAMILY.index(one.kind)):
        fault.kind.effect(view, fault.value)


def moved_row(view: View, _value: None) -> None:
    """Move a record from the last quarter to the first, for good."""
    if len(view.rows) > 1:
        number, _which = view.rows[view.chance.randrange(3 * len(view.rows) // 4, len(view.rows))]
        view.move(number, len(view.rows) // 8)
        view.rows = [row for row in view.rows if row[0] != number]
        view.rows.insert((len(view.rows) + 1) // 8, (number, FIRST))


def last_change(view: View, value: float, *, newest: int) -> None:
    """Change some records, then sort all by their last change."""
    there = sorted({number for number, _which in view.rows})
    for number in view.chance.sample(there, min(round(value), len(there))):
        view.change(number)
        view.memory.changed[number] = view.memory.requests
    view.rows.sort(key=lambda row: newest * view.memory.changed.get(row[0], 0))


def more_rows(view: View, value: float, *, which: int, near: bool) -> None:
    """Add a second row for so many percent of the records, next to the first or far from it.

    The second row follows a fixed record in any order: its own, or the one half a list further on.
    """
    if not view.size:
        return
    chance = Random(f"{view.name}/{which}/{near}")  # noqa: S311 - the same at every request
    many = min(view.size, max(1, round(view.size * value / 100)))
    there = {number for number, _which in view.rows}
    twice = there.intersection(chance.sample(range(view.size), many))
    behind: dict[int, list[Row]] = {}
    for number in sorted(twice):
        at = number if near else (number + view.size // 2) % view.size
        while at not in there:  # terminates: the record itself is in the list
            at = (at - 1) % view.size
        behind.setdefault(at, []).append((number, which))
    rows: list[Row] = []
    for row in view.rows:
        rows += [row, *(behind.pop(row[0], []))]
    view.rows = rows
    view.tell("repeated" if which == SAME else "conflicting", twice)


def ties(view: View, value: float) -> None:
    """Shuffle each tie; a record that was added belongs to the tie of the one before it."""
    size, chance, tied = max(1, round(value)), view.chance, list[list[Row]]()
    for row in view.rows:
        number, which = row
        if not tied or (which == FIRST and number < view.size and number % size == 0):
            tied.append([])
        tied[-1].append(row)
    for tie in tied:
        chance.shuffle(tie)
    view.rows = [row for tie in tied for row in tie]


def hidden_rows(view: View, value: float) -> None:
    """Omit records in the middle from every page, but count their places."""
    middle = view.size // 2
    view.hidden = range(middle, min(view.size, middle + round(value)))
    view.tell("hidden", view.hidden)


def short_page(view: View, _value: None) -> None:
    """Omit the later half of the page that holds the middle of the list."""
    view.short = True


def never_ending(view: View, _value: None) -> None:
    """Repeat the list behind its end, without end."""
    view.endless = True


def new_keys(view: View, _value: None) -> None:
    """Give every row a key that never comes back."""
    view.renamed = True
    view.tell("renamed", (number for number, _which in view.rows))


LIST = Stage.LIST
_OLDEST, _NEWEST = (partial(last_change, newest=one) for one in (1, -1))
_SAME, _SAME_NEAR = (partial(more_rows, which=SAME, near=one) for one in (False, True))
_OTHER, _OTHER_NEAR = (partial(more_rows, which=OTHER, near=one) for one in (False, True))
FAMILY = (
    Kind("moved-row", "a row of the last quarter moves to the first", LIST, moved_row),
    Kind("last-change", "value rows change; the newest change last", LIST, _OLDEST, 2.0),
    Kind("last-change-first", "value rows change; the newest change first", LIST, _NEWEST, 2.0),
    Kind("repeated-rows", "value percent of rows twice, half a list apart", LIST, _SAME, 1.0),
    Kind("repeated-rows-near", "value percent of rows twice, adjacent", LIST, _SAME_NEAR, 1.0),
    Kind("conflicting-rows", "twice with other values, half a list apart", LIST, _OTHER, 1.0),
    Kind("conflicting-rows-near", "twice with other values, adjacent", LIST, _OTHER_NEAR, 1.0),
    Kind("ties", "each tie of value rows in another order", LIST, ties, 7.0),
    Kind("hidden-rows", "value rows counted by offsets, but on no page", LIST, hidden_rows, 7.0),
    Kind("short-page", "half of the middle page, has_more true", LIST, short_page),
    Kind("never-ending", "has_more true, the list again behind its end", LIST, never_ending),
    Kind("new-keys", "every row under a key that never comes back", LIST, new_keys),
)
