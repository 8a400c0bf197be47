"""The anchored reading: a list read completely while it changes, and what that proves.

Theorem. Pages B0..Bm, B0 at offset 0, Bm the list's last, each neighbouring pair sharing a row.
Then every row that was there throughout, and whose order against the shared rows did not change,
is in one of them: for any number of rows added and removed anywhere, in any time order of the
readings. (By induction: a row is in B0..Bi or behind the row z shared by Bi and Bi+1; it is still
behind z in Bi+1, which has no gaps.) So each page is asked for a few rows before the end of the
last and has to begin with a row of the chain; where it does not, the reading goes back further.

Where a row moved, nothing is proven, and the list has to be counted (passes). The same answers lead
to the same requests, so that a killed scan is taken up by giving it the answers it had. Not here:
where pages come from and what becomes of them (the warehouse's).
"""

from dataclasses import dataclass, field
from math import ceil

from pipelines.api import paging
from pipelines.api.before import NOTHING, Before, Since
from pipelines.api.repeats import Repeats
from pipelines.api.source import Shown, Source
from pipelines.api.stitch import Anchor, Look, Stitch, Taken
from pipelines.state.proof import Grade

CHAINS = 3  # of a list without a key, or whose order is not that of last night
WITNESSES = 4
IN_A_ROW = 3  # pages that say there is more and show nothing more
READINGS, SPARE = 4, 8  # requests of an anchored reading at most: so many plain passes, and some


class NotAnchoredError(Exception):
    """Nothing is proven by reading anchored pages: the list has to be counted."""


@dataclass
class Chain:
    """Reads one list by anchored pages.

    `keyed` tells whether a row has a key of its own; without one, equal rows are different rows.
    `moved` tells, after a reading that proved nothing, whether that was since the order moves.
    """

    source: Source
    before: Before = NOTHING
    keyed: bool = True
    moved: bool = False
    stitch: Stitch = field(init=False)
    repeats: Repeats = field(init=False)
    _since: Since = field(init=False)
    _back: int = 0  # rows before the chain's end at which the next page is asked for
    _again: bool = False  # one more chain has to show the same
    _ends_early: bool = False  # the service was caught saying has_more false too soon
    _step: int = 0  # rows from one page to the next, 0 where none is likely to follow
    _longest: int = 0
    _in_vain: int = 0
    _added: int = 0
    _witnessed: int = 0  # rows that were added at the head
    _text: bytes = b""

    def __post_init__(self) -> None:
        """Begin with nothing read."""
        self.stitch = Stitch(keyed=self.keyed)
        self.repeats = Repeats(self.stitch)
        self._since = Since(self.before.order)

    async def read(self) -> Grade | None:
        """Read the list to its end; return SNAPSHOT or COMPLETE, None where it is to be counted.

        What reading a page raises ends the reading as it is.
        """
        tally = self.source.tally
        try:
            while True:
                tally.chains += 1
                self._added = self._witnessed = 0
                await self._whole()
                grade = await self._graded()
                if grade or tally.chains == CHAINS:
                    return grade
        except NotAnchoredError:
            return None

    async def _whole(self) -> None:
        """Read from offset 0 to the end."""
        look = await self._look(0)
        self._begin(look)
        ended = await self._ends(look)
        while not ended:
            end = self.stitch.end
            look = await self._look(max(0, end - self._back))
            joined = self._joined(look, end)
            ended = joined and await self._ends(look)

    async def _graded(self) -> Grade | None:
        """Grade a chain that reached the end; None where the list has to be read once more."""
        if self.source.tally.contradiction:
            raise NotAnchoredError
        if len(self.stitch.links) == 1:  # one page is one moment
            alone = self.source.tally.chains == 1
            alone = alone and self.source.tally.rows <= self.stitch.links[0].rows
            return Grade.SNAPSHOT if alone else Grade.COMPLETE
        if self._again and not self._added_nothing():
            if self.keyed and self.source.tally.chains > 1:
                self._order_moves()
            return None
        again = self._again
        await self._witness()
        if self._again > again:
            return None
        if self.keyed and not await self._accounted():
            return None
        self.source.tally.assumption = self._assumption()
        return Grade.COMPLETE

    async def _accounted(self) -> bool:
        """Whether every place of the list is accounted for; raise where rows moved.

        A row that moved out of the part that was still to be read shows only in the number of
        rows: the chain holds as many as the list is long, unless some were added or removed
        meanwhile. Then the list is read once more. Not where every row of the last reading was
        seen again: what is lacking was added since. Where rows repeat, all of them have to be in
        the list twice.
        """
        if self.repeats.moved:
            self._order_moves()
        lacking = self.stitch.end - self.stitch.rows - self._witnessed
        once = self.source.tally.chains == 1
        if once and lacking and (self.repeats or (lacking > 0 and not self._since.all_seen)):
            return False
        if lacking and self.repeats:
            raise NotAnchoredError
        if self.repeats and not await self.repeats.proven(self.source.limit, self._reread):
            self._order_moves()
        return True

    async def _reread(self, offset: int) -> Look:
        self._step = 0
        return await self._look(offset)

    def _order_moves(self) -> None:
        self.moved = True
        raise NotAnchoredError

    def _added_nothing(self) -> bool:
        """Whether this chain shows nothing that the last whole one did not."""
        if self.keyed:
            return self._added == 0
        last, self._text = self._text, self.stitch.text()
        return last == self._text

    def _assumption(self) -> str:
        """Say what nobody but the service can rule out."""
        if self._again:
            verb = "moved" if self.keyed else "changed"
            return f"if nothing {verb} while the last chain was read"
        if self.keyed:
            return "if no row changed its place among the others"
        return "if no row changed its place, and no run of rows stands twice where pages meet"

    async def _witness(self) -> None:
        """Read again from offset 0 while that shows unseen rows: what was added at the head."""
        offset = 0
        for _page in range(WITNESSES):
            look = await self._look(offset)
            self._witnessed += look.unseen
            self._met(look)
            if not look.unseen or not look.page.has_more or look.end <= offset:
                return
            offset = max(offset + 1, look.end - paging.overlap(self.source.limit))

    def _joined(self, look: Look, end: int) -> bool:
        """Let a page join the chain, which ended at an offset; return False where it does not."""
        self._met(look)
        if look.page.offset == 0:
            self._begin(look)
            return True
        anchor = self.stitch.anchor(look) or self._presumed(look)
        if anchor is None:
            if self.keyed and self.repeats.suspects:
                self._order_moves()  # going back further would not find what moved
            self._widen()
            return False
        self.stitch.join(look, anchor)
        if look.page.rows and (look.end > end or not look.page.has_more):
            self._in_vain = 0
        elif look.page.offset == end - self._overlap():
            self._vain(look)
        self._back = self._overlap()
        return True

    def _met(self, look: Look) -> None:
        """Take note of rows met again; without a key, one may have been another that is equal."""
        rows = self.repeats.meet(look)
        if self.keyed:
            self.source.tally.broke(rows)
        elif rows:
            self._again = True
            self.source.tally.flag("equal rows, or rows that moved")

    def _presumed(self, look: Look) -> Anchor | None:
        """Let equal rows meet as if nothing had changed; only a second reading proves it."""
        anchor = self.stitch.presumed(look)
        if anchor:
            self._again = True
            self.source.tally.flag("equal rows where pages meet")
        return anchor

    def _begin(self, look: Look) -> None:
        self.stitch.begin(look)
        self._back = self._overlap()

    def _overlap(self) -> int:
        return paging.overlap(self.source.limit)

    def _widen(self) -> None:
        """Go further back: the page did not begin with a row of the chain."""
        self.source.tally.repairs += 1
        self._step = 0  # nothing is worth a guess before a page joins again
        if self._back == self._overlap():
            self._back = max(self._back + 1, self.source.limit // 2)
        else:
            self._back += max(1, 3 * self.source.limit // 4)

    async def _ends(self, look: Look) -> bool:
        """Whether a page is the list's last.

        A full page may only seem so, and a short one where the list had more rows last time: look
        behind it.
        """
        page = look.page
        if page.has_more:
            return self._refuse_single_rows()
        full = page.rows >= page.limit
        if not full and self.stitch.rows >= self.before.rows:
            return True
        if not full or not self._ends_early:
            behind = await self._look(look.end)
            if not behind.page.rows:
                return True
            self._ends_early = True
            self.source.tally.flag(f"has_more false at offset {page.offset}, and rows behind it")
        return self._refuse_single_rows()

    def _refuse_single_rows(self) -> bool:
        if self._overlap() == 0:
            raise NotAnchoredError  # pages of a single row cannot overlap
        return False

    async def _look(self, offset: int) -> Look:
        """Read a page; the ones that are likely to follow may be asked for meanwhile."""
        if self.source.tally.requests >= self._allowed():
            raise NotAnchoredError
        step = self._step if offset else 0
        look = await self.source.read(offset, step, self._seen)
        more = look.page.has_more
        self._step = max(0, self.source.limit - self._overlap()) if more else 0
        if self.source.tally.contradiction or self.source.cached:
            raise NotAnchoredError
        if not self._again:
            self._again = self._since.moved(look, repeats=bool(self.repeats))
        if more and not look.page.rows:
            self._vain(look)
        if more and paging.endless(offset, self.before.rows, self.source.limit):
            self._endless(offset, "pages do not end")
        return look

    def _seen(self, taken: Taken, shown: Shown) -> Look:
        look = self.stitch.look(taken, shown.marks)
        self.source.tally.rows += look.unseen
        self._added += look.unseen
        return look

    def _allowed(self) -> int:
        """Return how many requests the reading may take, by the longest chain so far.

        Not by the rows seen: a list that is another one on every page would never end.
        """
        self._longest = max(self._longest, self.stitch.rows)
        rows = max(self.before.rows, self._longest)
        return READINGS * (ceil(rows / max(1, self.source.limit)) + 1) + SPARE

    def _vain(self, look: Look) -> None:
        """Count pages in a row that promise more and do not get further."""
        self._in_vain += 1
        if self._in_vain == IN_A_ROW:
            self._endless(look.page.offset, "nothing more comes")

    def _endless(self, offset: int, why: str) -> None:
        self.source.tally.contradict(f"has_more is true at offset {offset:,}, and {why}")
        raise NotAnchoredError
