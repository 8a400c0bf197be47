"""Which of a stream's likely key fields identifies its records: decided over a whole first scan.

A candidate is dropped where more than 1 % of the rows lack it, or where more than 2 % of its values
stand for different records in one answer. Rows that repeat with the same content do not count
against it. One without conflicts is preferred. While the scan goes on, the one that it reads by is
only given up for a clear reason: some pages say little of a whole list. Not here: the names (key),
what becomes of rows in conflict (the warehouse's).
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from pipelines.api import page
from pipelines.api.content import content
from pipelines.api.key import keys
from pipelines.api.page import Page
from pipelines.state.proof import Proof

LACKING = 100  # one row in so many may be without a value
CONFLICTING = 50  # one row in so many may have the value of a different one
CLEAR = 5  # times as many as may be: no need to read on
SHARED = 2  # places of the list for each value: it is the value of several records


@dataclass
class _Evidence:
    """What the pages so far say of one candidate."""

    rows: int = 0
    lacking: int = 0
    conflicts: int = 0

    def holds(self, times: int = 1) -> bool:
        """Whether the field may be the key; so many times as many rows may speak against it."""
        most = times * self.rows
        return self.lacking * LACKING <= most and self.conflicts * CONFLICTING <= most


@dataclass
class Candidates:
    """The names that a key may have, the likeliest first, and what speaks against them."""

    names: tuple[str, ...]
    _evidence: dict[str, _Evidence] = field(init=False)
    _places: int = 0  # of the list, from its start, that pages have shown
    _read: set[str | None] = field(default_factory=set)  # by these the list was read to its end

    def __post_init__(self) -> None:
        """Begin without evidence."""
        self._evidence = {name: _Evidence() for name in self.names}

    @property
    def best(self) -> str | None:
        """The name to identify records by; None where none holds: by all that they say."""
        holding = [name for name in self.names if self._evidence[name].holds()]
        return min(holding, key=lambda name: bool(self._evidence[name].conflicts), default=None)

    def fails(self, name: str | None) -> bool:
        """Whether pages speak so clearly against a name that no more of them are needed."""
        return name is not None and not self._evidence[name].holds(CLEAR)

    def settled(self, name: str | None, proof: Proof) -> bool:
        """Whether a list that was read to its end by a name needs no other one.

        A name is dropped for another one where the list has many more places than it has values:
        each is that of several records, on different pages. None is tried twice.
        """
        self._read.add(name)
        if name is not None and SHARED * proof.rows < self._places:
            evidence = self._evidence.pop(name)
            self.names = tuple(each for each in self.names if each != name)
            if self.best is None:
                self.names, self._evidence = (name,), {name: evidence}
        return self.best in self._read

    def learn(self, read: Page) -> None:
        """Take in what a page says of the candidates, if it shows more of the list."""
        begin = max(0, self._places - read.offset)
        if begin >= read.rows:
            return
        self._places = read.offset + read.rows
        for name, evidence in self._evidence.items():
            found = keys(read.answer.body, name)
            evidence.rows += len(found) - begin
            evidence.lacking += found[begin:].count(None)
            evidence.conflicts += _conflicts(read.answer.body, found)


def _conflicts(body: bytes, found: list[bytes | None]) -> int:
    """Return how many values belong to different records on one page."""
    often = {each for each, times in Counter(found).items() if each is not None and times > 1}
    if not often:
        return 0
    records, contents = page.records(body), defaultdict(set)
    for row, each in enumerate(found):
        if each in often:
            contents[each].add(content(bytes(records[row])))
    return sum(len(different) > 1 for different in contents.values())
