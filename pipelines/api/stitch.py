"""The pages of one anchored reading, joined: which rows belong to it, where a page joins it.

    page a   1 2 3 4 5 6 7            joined at 6: of page a, the rows 1 to 5 are kept
    page b             6 7 8 9 …      and all rows of page b, the last one

The kept rows stand in their true order for as long as the service keeps the order of its rows,
whenever each page was read: a row of page a before 6 stands before all of page b. So a row that is
out of this order has moved, or is in the list twice. Not here: which page to ask for (chain), which
of the two it is (repeats).
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise

from pipelines.api import paging
from pipelines.api.page import Page
from pipelines.api.seen import SIZE, Places, Seen

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

    @property
    def times(self) -> Counter[bytes]:
        """How often each of its keys stands on it."""
        return Counter(each for each in self.marks if each)


@dataclass
class Link:
    """A page of the chain; its first `kept` rows belong to it, after `before` of other pages.

    `marks` are those of its rows, one after the other, where they have no key.
    """

    number: int
    start: int
    offset: int
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
    def pages(self) -> int:
        """How many pages were read, whether they belong to the chain or not."""
        return len(self._starts)

    @property
    def rows(self) -> int:
        """How many rows belong to the chain."""
        return self.links[-1].before + self.links[-1].kept if self.links else 0

    def look(self, taken: Taken, marks: Sequence[bytes | None]) -> Look:
        """Take the rows of a page in, by their marks; return what was known of them."""
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
        """Let a chain begin with a page; what was joined before is void."""
        self._cut(0)
        self._append(look)

    def anchor(self, look: Look) -> Anchor | None:
        """Return where a page joins by its first row, None where that row does not tell.

        A row that stands in several places, of the chain or of the page, tells only where the row
        behind it stands behind one of them.
        """
        marked = [row for row, each in enumerate(look.marks) if each]
        if not marked or (self.keyed and marked[0] in self.displaced(look)):
            return None
        first, following = marked[0], look.known[marked[1]] if len(marked) > 1 else ()
        found = [place for place in look.known[first] if self.link(place)]
        if len(found) > 1 or look.marks.count(look.marks[first]) > 1:
            found = [place for place in found if self.keyed and place + 1 in following]
        link = self.link(found[0]) if len(found) == 1 else None
        if link is None or not (self.keyed or self._confirmed(look, link, found[0])):
            return None
        return Anchor(self._places[self.page_of(found[0])], found[0] - link.start)

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

    def join(self, look: Look, anchor: Anchor) -> None:
        """Let the chain go on with a page from its anchor."""
        self._cut(anchor.place + 1)
        self.links[-1].kept = anchor.row
        self._append(look)

    def displaced(self, look: Look) -> list[int]:
        """Return the rows of a page that stand in another order than in the chain: the fewest.

        Rows of more than a page before the offset are, where others are not: so few rows are
        shared by neighbouring pages that a page may show more rows that are in the list twice.
        Rows that follow one another as in the chain are not: more were added before them.
        """
        times, early = look.times, self._place(look.page.offset - look.page.limit)
        known = [
            (row, found[0])
            for row, (each, at) in enumerate(zip(look.marks, look.known, strict=True))
            if each and at and times[each] == 1 and len(found := self.joined(at)) == 1
        ]
        if all(0 < new - old <= look.page.limit for (_, old), (_, new) in pairwise(known)):
            return []
        near = [(row, place) for row, place in known if place >= early] or known
        order = [near[at][0] for at in out_of_order([place for _row, place in near])]
        return sorted({row for row, _place in known} - {row for row, _place in near} | {*order})

    def joined(self, places: Places) -> list[int]:
        """Return those of some places that belong to the chain, in its order."""
        return sorted(place for place in places if self.link(place))

    def link(self, place: int) -> Link | None:
        """Return the page of the chain to which a row belongs, None where it does to none."""
        at = self._places[self.page_of(place)]
        link = None if at == NOWHERE else self.links[at]
        return link if link and place - link.start < link.kept else None

    def stitched(self) -> list[tuple[int, int]]:
        """Return the chain's pages by number, each with how many of its rows are kept."""
        return [(link.number, link.kept) for link in self.links]

    def text(self) -> bytes:
        """Return a digest of the chain's rows in their order; only without a key."""
        digest = blake2b()
        for link in self.links:
            digest.update(link.marks[: link.kept * SIZE])
        return digest.digest()

    def _place(self, offset: int) -> int:
        """Return the place of the chain's row at an offset, as if nothing had changed since."""
        wanted = self.rows - (self.end - offset) if self.links else 0
        for link in reversed(self.links):
            if link.before <= wanted:
                return link.start + wanted - link.before
        return 0

    def _append(self, look: Look) -> None:
        rows, page = len(look.marks), look.page
        if rows:
            self._places[self.page_of(look.start)] = len(self.links)
        marks = b"" if self.keyed else b"".join(each or b"" for each in look.marks)
        self.links.append(
            Link(look.number, look.start, page.offset, rows, look.end, rows, self.rows, marks)
        )

    def _cut(self, size: int) -> None:
        """Leave the chain that many pages; the last of them is whole again."""
        for link in self.links[size:]:
            if link.rows:
                self._places[self.page_of(link.start)] = NOWHERE
        del self.links[size:]
        if self.links:
            self.links[-1].kept = self.links[-1].rows

    @staticmethod
    def _confirmed(look: Look, link: Link, place: int) -> bool:
        """Whether another row of the page also follows the anchor in the page it joins."""
        behind = range(place + 1, link.start + link.rows)
        return any(at in behind for known in look.known for at in known)


def out_of_order(places: Sequence[int]) -> list[int]:
    """Return which of some places to leave out, as few as possible, so that the others ascend.

    Where either of two could be left out, it is the later one: what a page shows first is where
    it joins.
    """
    if all(first < second for first, second in pairwise(places)):
        return []
    tails: list[int] = []  # by length, from the end: the best begin of an ascending sequence
    begins: list[int] = []  # its index
    following: list[int] = [-1] * len(places)
    for at in range(len(places) - 1, -1, -1):
        length = bisect_left(tails, -places[at])
        following[at] = begins[length - 1] if length else -1
        tails[length : length + 1] = [-places[at]]
        begins[length : length + 1] = [at]
    kept, at = set(), begins[-1]
    while at >= 0:
        kept.add(at)
        at = following[at]
    return [each for each in range(len(places)) if each not in kept]
