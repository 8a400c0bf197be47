"""The pages of one chain, stitched: which rows belong to it, where a page joins, what moved.

    page a   1 2 3 4 5 6 7            joined at 6: of page a, the rows 1 to 5 are stitched
    page b             6 7 8 9 …      and all rows of page b, the last one

The stitched rows stand in their true order for as long as the service keeps the order of its rows,
whenever each page was read: a row of page a before 6 stands before all of page b. So a row that is
out of this order has moved. Not here: which page to ask for (chain).
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise

from pipelines.api import paging
from pipelines.api.page import Page
from pipelines.api.seen import SIZE, Places, Seen, mark

NOWHERE = -1  # the place in the chain of a page that does not belong to it


@dataclass(frozen=True)
class Taken:
    """A page that was read: its number among the pages of the scan, and the keys of its rows.

    A key is None where nothing tells the row from others.
    """

    page: Page
    number: int
    keys: Sequence[bytes | None]


@dataclass(frozen=True)
class Look:
    """A page with what was known of its rows before; `start` counts the rows read before it."""

    page: Page
    number: int
    start: int
    marks: Sequence[bytes | None]
    known: Sequence[Places]

    @property
    def end(self) -> int:
        """The offset behind it."""
        return paging.end(self.page)

    @property
    def unseen(self) -> int:
        """How many of its keys no page had shown before."""
        return len(
            {each for each, at in zip(self.marks, self.known, strict=True) if each and not at}
        )


@dataclass
class Link:
    """A page of the chain; its first `kept` rows are stitched, after `before` of other pages.

    `marks` are those of its rows, one after the other, where they have no key.
    """

    number: int
    start: int
    rows: int
    end: int
    kept: int
    before: int
    marks: bytes = b""


@dataclass(frozen=True)
class Anchor:
    """Where a page joins: the place of a page in the chain, and the row of it."""

    place: int
    row: int


@dataclass
class Stitch:
    """The chain so far and every row that the scan has read.

    Without a key (`keyed` false) equal rows are different rows, so that a row proves more where
    it stands alone and is followed by a second that was known to follow it.
    """

    keyed: bool
    links: list[Link] = field(default_factory=list)
    seen: Seen = field(default_factory=Seen)
    _rows: int = 0
    _starts: list[int] = field(default_factory=list)  # of every page read
    _places: list[int] = field(default_factory=list)  # in the chain

    @property
    def end(self) -> int:
        """The offset behind the chain's last page."""
        return self.links[-1].end

    @property
    def rows(self) -> int:
        """How many rows are stitched."""
        return self.links[-1].before + self.links[-1].kept if self.links else 0

    def look(self, taken: Taken) -> Look:
        """Take the rows of a page in; return what was known of them."""
        marks = [None if key is None else mark(key) for key in taken.keys]
        look = Look(taken.page, taken.number, self._rows, marks, self.seen.find(marks))
        places = range(self._rows, self._rows + len(marks))
        self.seen.add((at, each) for at, each in zip(places, marks, strict=True) if each)
        self._starts.append(self._rows)
        self._places.append(NOWHERE)
        self._rows += len(marks)
        return look

    def page_of(self, place: int) -> int:
        """Return which of the pages read shows the row that was read at a place."""
        return bisect_right(self._starts, place) - 1

    def begin(self, look: Look) -> None:
        """Let a chain begin with a page; what was stitched before is void."""
        self._cut(0)
        self._append(look)

    def anchor(self, look: Look) -> Anchor | None:
        """Return where a page joins by its first row, None where that row does not tell.

        The row has to stand once in the chain and once in the page: a key that is twice in a list
        may be another row's.
        """
        row = next((row for row, each in enumerate(look.marks) if each), None)
        if row is None or look.marks.count(look.marks[row]) > 1:
            return None
        found = [place for place in look.known[row] if self._link(place)]
        link = self._link(found[0]) if len(found) == 1 else None
        if link is None or not (self.keyed or self._confirmed(look, link, found[0])):
            return None
        place = self._places[self.page_of(found[0])]
        return Anchor(place, found[0] - link.start)

    def presumed(self, look: Look) -> Anchor | None:
        """Return where a page without keys joins if nothing changed since the last was read.

        No proof: its rows are equal to those that end the last page, but equal rows may be others.
        """
        link = self.links[-1]
        shared = link.end - look.page.offset
        if self.keyed or not 0 < shared <= link.rows:
            return None
        begin = b"".join(each or b"" for each in look.marks[:shared])
        if link.marks[-shared * SIZE :] != begin:
            return None
        return Anchor(len(self.links) - 1, link.rows - shared)

    def join(self, look: Look, anchor: Anchor) -> int:
        """Let the chain go on with a page from its anchor; return how often its order broke."""
        self._cut(anchor.place + 1)
        breaks = self.breaks(look)
        self.links[-1].kept = anchor.row
        self._append(look)
        return breaks

    def breaks(self, look: Look) -> int:
        """Count where a page's rows stand in another order than in the chain."""
        times = Counter(look.marks)
        known = zip(look.marks, look.known, strict=True)
        stitched = [
            [place for place in places if self._link(place)]
            for each, places in known
            if places and times[each] == 1
        ]
        return descents([places[0] for places in stitched if len(places) == 1])

    def stitched(self) -> list[tuple[int, int]]:
        """Return the chain's pages by number, each with how many of its rows are stitched."""
        return [(link.number, link.kept) for link in self.links]

    def text(self) -> bytes:
        """Return a digest of the stitched rows in their order; only without a key."""
        digest = blake2b()
        for link in self.links:
            digest.update(link.marks[: link.kept * SIZE])
        return digest.digest()

    def _append(self, look: Look) -> None:
        rows = len(look.marks)
        if rows:
            self._places[self.page_of(look.start)] = len(self.links)
        marks = b"" if self.keyed else b"".join(each or b"" for each in look.marks)
        self.links.append(Link(look.number, look.start, rows, look.end, rows, self.rows, marks))

    def _cut(self, size: int) -> None:
        """Leave the chain that many pages; the last of them is whole again."""
        for link in self.links[size:]:
            if link.rows:
                self._places[self.page_of(link.start)] = NOWHERE
        del self.links[size:]
        if self.links:
            self.links[-1].kept = self.links[-1].rows

    def _link(self, place: int) -> Link | None:
        """Return the page of the chain in which a row is stitched, None where it is not."""
        at = self._places[self.page_of(place)]
        link = None if at == NOWHERE else self.links[at]
        return link if link and place - link.start < link.kept else None

    @staticmethod
    def _confirmed(look: Look, link: Link, place: int) -> bool:
        """Whether another row of the page also follows the anchor in the page it joins."""
        behind = range(place + 1, link.start + link.rows)
        return any(at in behind for known in look.known for at in known)


def descents(places: Sequence[int]) -> int:
    """Count where a sequence goes down."""
    return sum(second < first for first, second in pairwise(places))
