"""The anchored chain: a list read completely while it changes, and what that proves.

Theorem. Pages B0..Bm, B0 at offset 0, Bm the list's last, each neighbouring pair sharing a row.
Then every row that was there throughout, and whose order against the shared rows did not change,
is in one of them: for any number of rows added and removed anywhere, in any time order of the
readings. (By induction: a row is in B0..Bi or behind the row z shared by Bi and Bi+1; it is still
behind z in Bi+1, which has no gaps.) So each page is asked for a few rows before the end of the
last and has to begin with a row of the chain; where it does not, the reading goes back further.

The same answers lead to the same requests, so that a killed scan is taken up by giving it the
answers it had. Not here: where pages come from and what becomes of them (the warehouse's).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import ceil

from pipelines.api import paging
from pipelines.api.seen import Seen
from pipelines.api.stitch import Anchor, Look, Stitch, Taken, descents
from pipelines.api.tally import Tally
from pipelines.state.proof import Grade, Proof

FEW = 3  # breaks of order that a chain survives; with more the order moves
CHAINS = 5
WITNESSES = 4
IN_A_ROW = 3  # pages that say there is more and show nothing more
SPARE = 50  # requests, beyond so many readings of the whole list:
READINGS, READINGS_MOVING = 3, 5

Take = Callable[[int], Awaitable[Taken]]


class NothingProvenError(Exception):
    """The reading ends without a proof; says why."""


@dataclass(frozen=True)
class Before:
    """What the last proven reading of the list left: how many rows, and their order."""

    rows: int = 0
    order: Seen | None = None


NOTHING = Before()


class Chain:
    """Reads one list; `take` reads the page at an offset and numbers it.

    `keyed` tells whether a row has a key of its own; without one, equal rows are different rows.
    """

    def __init__(self, take: Take, before: Before = NOTHING, *, keyed: bool = True) -> None:
        self._take = take
        self._before = before
        self._stitch = Stitch(keyed=keyed)
        self._tally = Tally()
        self._limit = 0  # the smallest page size that the service used
        self._back = 0  # rows before the chain's end at which the next page is asked for
        self._moving = False
        self._ends_early = False  # the service was caught saying has_more false too soon
        self._longest = self._in_vain = self._drift = self._added = 0
        self._text = b""

    @property
    def stitched(self) -> list[tuple[int, int]]:
        """The chain's pages by number, each with how many of its rows belong to it."""
        return self._stitch.stitched()

    async def read(self, key: str | None = None, *, inferred: bool = False) -> Proof:
        """Read the list to its end; return what is proven of it.

        What `take` raises ends the reading as it is.
        """
        try:
            grade = await self._chains()
        except NothingProvenError as reason:
            self._tally.reason, grade = str(reason), Grade.NOT_PROVEN
        if not self._stitch.keyed:  # equal rows count each
            self._tally.rows = max(self._tally.rows, self._stitch.rows)
        return self._tally.proof(grade, key, inferred=inferred)

    async def _chains(self) -> Grade:
        """Read chain after chain: one, where the order keeps still."""
        while True:
            self._tally.begin_chain()
            self._added = 0
            grade = await self._graded() if await self._whole() else None
            if grade:
                return grade
            self._moving = True
            if self._tally.chains == CHAINS:
                return Grade.UNSTABLE_ORDER

    async def _whole(self) -> bool:
        """Read from offset 0 to the end; return False where too much moved meanwhile."""
        look = await self._look(0)
        self._begin(look)
        ended = await self._ends(look)
        while not ended:
            end = self._stitch.end
            look = await self._look(max(0, end - self._back))
            joined = self._joined(look, end)
            if self._tally.breaks > FEW:
                return False
            ended = joined and await self._ends(look)
        return True

    async def _graded(self) -> Grade | None:
        """Grade a chain that reached the end; None where the list has to be read once more."""
        if len(self._stitch.links) == 1:  # one page is one moment
            alone = self._tally.chains == 1 and self._tally.rows <= self._stitch.links[0].rows
            return Grade.SNAPSHOT if alone else Grade.COMPLETE
        if self._moving and not self._added_nothing():
            return None
        moving = self._moving
        await self._witness()
        if self._tally.breaks > FEW or self._moving > moving:
            return None
        self._tally.assumption = self._assumption()
        return Grade.COMPLETE_FOR_UNMOVED if self._tally.breaks else Grade.COMPLETE

    def _added_nothing(self) -> bool:
        """Whether this chain shows nothing that the last whole one did not."""
        if self._stitch.keyed:
            return self._added == 0
        last, self._text = self._text, self._stitch.text()
        return last == self._text

    def _assumption(self) -> str:
        """Say what nobody but the service can rule out."""
        if self._moving:
            verb = "moved" if self._stitch.keyed else "changed"
            return f"if nothing {verb} while the last chain was read"
        if self._stitch.keyed:
            return "if no row changed its place among the others"
        return "if no row changed its place, and no run of rows stands twice where pages meet"

    async def _witness(self) -> None:
        """Read again from offset 0 while that shows unseen rows: what was added at the head."""
        offset = 0
        for _page in range(WITNESSES):
            look = await self._look(offset)
            self._broke(self._stitch.breaks(look))
            if not look.unseen or not look.page.has_more or look.end <= offset:
                return
            offset = max(offset + 1, look.end - paging.overlap(self._limit))

    def _joined(self, look: Look, end: int) -> bool:
        """Let a page join the chain, which ended at an offset; return False where it does not."""
        if look.page.offset == 0:
            self._broke(self._stitch.breaks(look))
            self._begin(look)
            return True
        anchor = self._stitch.anchor(look) or self._presumed(look)
        if anchor is None:
            self._widen()
            return False
        self._broke(self._stitch.join(look, anchor))
        if look.page.rows and (look.end > end or not look.page.has_more):
            self._in_vain = 0
        elif look.page.offset == end - self._overlap():
            self._vain(look)
        self._back = self._overlap()
        return True

    def _broke(self, times: int) -> None:
        """Count breaks of order; without a key, the row may have been another that is equal."""
        if self._stitch.keyed:
            self._tally.broke(times)
        elif times:
            self._moving = True
            self._tally.flag("equal rows, or rows that moved")

    def _presumed(self, look: Look) -> Anchor | None:
        """Let equal rows meet as if nothing had changed; only a second reading proves it."""
        anchor = self._stitch.presumed(look)
        if anchor:
            self._moving = True
            self._tally.flag("equal rows where pages meet")
        return anchor

    def _begin(self, look: Look) -> None:
        self._stitch.begin(look)
        self._back = self._overlap()

    def _overlap(self) -> int:
        return paging.overlap(self._limit)

    def _widen(self) -> None:
        """Go further back: the page did not begin with a row of the chain."""
        self._tally.repairs += 1
        if self._back == self._overlap():
            self._back = max(self._back + 1, self._limit // 2)
        else:
            self._back += max(1, 3 * self._limit // 4)

    async def _ends(self, look: Look) -> bool:
        """Whether a page is the list's last.

        A full page may only seem so. Where it is the first, or less was read than last time, one
        request looks behind it.
        """
        page = look.page
        if page.has_more:
            return self._refuse_single_rows()
        if page.rows < page.limit:
            return True
        fewer = self._before.rows > self._tally.rows
        if not self._ends_early and (page.offset == 0 or fewer):
            behind = await self._look(look.end)
            self._ends_early = behind.page.rows > 0
            if self._ends_early:
                self._tally.flag(f"has_more false at offset {page.offset}, and rows behind it")
        return not self._ends_early or self._refuse_single_rows()

    def _refuse_single_rows(self) -> bool:
        if self._overlap() == 0:
            raise NothingProvenError("pages of a single row cannot overlap")
        return False

    async def _look(self, offset: int) -> Look:
        """Read the page at an offset, twice where it is doubtful."""
        look = await self._read(offset)
        if paging.doubtful(look.page):
            look = await self._read(offset)
        if paging.stands_still(look.page):
            following = look.page.next_offset
            raise NothingProvenError(f"server does not advance (offset {offset} -> {following})")
        self._tally.flag(paging.flag(look.page))
        return look

    async def _read(self, offset: int) -> Look:
        allowed = self._allowed()
        if self._tally.requests >= allowed:
            raise NothingProvenError(
                f"no proof within {allowed:,} requests: the list changes too much to be read, or "
                "is another one on every page"
            )
        look = self._stitch.look(await self._take(offset))
        self._tally.count(look, self._stitch.page_of)
        self._added += look.unseen
        self._limit = min(self._limit or look.page.limit, max(1, look.page.limit))
        self._compare(look)
        if look.page.has_more and not look.page.rows:
            self._vain(look)
        return look

    def _allowed(self) -> int:
        """Return how many requests the scan may take, by the longest chain so far.

        Not by the rows seen: a list that is another one on every page would never end.
        """
        readings = READINGS_MOVING if self._moving else READINGS
        self._longest = max(self._longest, self._stitch.rows)
        rows = max(self._before.rows, self._longest)
        return readings * ceil(rows / max(1, self._limit)) + SPARE

    def _vain(self, look: Look) -> None:
        """Count pages in a row that promise more and do not get further."""
        self._in_vain += 1
        if self._in_vain == IN_A_ROW:
            raise NothingProvenError(
                f"has_more is true at offset {look.page.offset}, and nothing more comes"
            )

    def _compare(self, look: Look) -> None:
        """Look for signs that the order moves from night to night."""
        if self._before.order is None or self._moving:
            return
        places = self._before.order.find(look.marks)
        fresh = [at[0] for at, known in zip(places, look.known, strict=True) if at and not known]
        self._drift += descents(fresh)
        self._moving = self._drift > FEW
