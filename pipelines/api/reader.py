"""Reading one list: anchored pages first, then passes that count its rows if its order changes.

Here: which of the two is used, and the resulting proof. Not here: where pages come from and how
they are stored (the warehouse's).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pipelines.api.before import NOTHING, Before
from pipelines.api.chain import Chain
from pipelines.api.passes import PASSES, End, Passes
from pipelines.api.source import Source, Take
from pipelines.state.proof import Counting, Grade, Proof

ONE_IN = 10  # if order broke on more than one page in so many, the next scan starts counting
ANCHORED_AGAIN = 7  # one scan in so many tries anchored pages again


def never() -> bool:
    """Return False: there is no time limit."""
    return False


@dataclass
class Reader:
    """Reads one list; `take` reads the page at an offset and numbers it.

    `keyed` tells whether a row has a key of its own; without one, equal rows are different rows.
    `last` is the proof of the last scan, `late` returns whether the time limit for a list that is
    not proven yet is reached.
    """

    take: Take
    before: Before = NOTHING
    keyed: bool = True
    last: Proof | None = None
    late: Callable[[], bool] = never
    source: Source = field(init=False)
    chain: Chain = field(init=False)
    passes: Passes | None = None
    end: End | None = None  # of the count
    reason: str = ""

    def __post_init__(self) -> None:
        """Begin with nothing read."""
        self.source = Source(self.take)
        self.chain = Chain(self.source, self.before, self.keyed)

    @property
    def stitched(self) -> list[tuple[int, int]]:
        """The pages by number whose rows stand in the list's order, each with how many of them.

        There are none if the list was counted, because its order is not known.
        """
        return [] if self.passes else self.chain.stitch.stitched()

    @property
    def counting(self) -> Counting | None:
        """How far the count is, None before it begins."""
        if self.passes is None:
            return None
        places = self.passes.lengths[-1] if self.passes.lengths else None
        return Counting(self.source.tally.rows, places, self.passes.passes + 1)

    @property
    def superseded(self) -> int:
        """The number of the first page that is loaded; earlier pages only serve as evidence."""
        counted = self.passes.counted if self.passes else None
        return counted.number if counted else 0

    @property
    def stale(self) -> set[int]:
        """The numbers of pages that are not loaded because they are older than their request.

        If the list is not proven complete they are loaded, because there may be no other copy.
        """
        proven = self.passes is None or self.passes.counted
        return self.source.stale if proven else set()

    @property
    def repeated(self) -> list[tuple[int, int]]:
        """The page number and row of each row proven to repeat one that is far from it."""
        return [] if self.passes else self.chain.repeats.places()

    async def read(self, key: str | None = None, *, inferred: bool = False) -> Proof:
        """Read the list to its end; return its proof.

        An error of `take` ends the reading and is raised unchanged.
        """
        skipped = self._skipped()
        grade = None if skipped else await self.chain.read()
        if grade is None:
            grade = await self._count()
        proof = self._proof(grade, key, inferred=inferred)
        return proof if self.passes is None else self._counted(proof, self.passes, skipped)

    def _skipped(self) -> int:
        """Return how many scans in a row began with the count, this one included."""
        if self.last is None or not self.last.order_moves:
            return 0
        return (self.last.anchored_skipped + 1) % ANCHORED_AGAIN

    async def _count(self) -> Grade:
        begun = self.chain.stitch.end if self.chain.stitch.links else 0
        self.passes = Passes(self.source, self.keyed, begun, self.before.rows, self.late)
        self.end = await self.passes.read()
        self.reason = self._reason(self.end, self.passes)
        return Grade.COMPLETE_BY_COUNT if self.passes.counted else Grade.PARTIAL

    def _reason(self, end: End, passes: Passes) -> str:
        """Say why a list is not proven complete."""
        tally, places = self.source.tally, passes.lengths[-1] if passes.lengths else 0
        match end:
            case End.COUNTED:
                return ""
            case End.CONTRADICTION:
                return f"The service contradicts itself: {tally.contradiction}"
            case End.NOTHING_NEW:
                rows = passes.count.since(0)
                return f"Distinct rows stopped growing at {rows:,} of {places:,} places"
            case End.NO_LENGTH:
                return "No answer showed where the list ends"
            case End.TIME:
                return "Its rows were not counted within sync_max_minutes"
            case End.BUDGET:
                return (
                    f"Its rows were not counted within {passes.budget:,} requests, {PASSES} times "
                    "what a list of this length takes"
                )

    def _proof(self, grade: Grade, key: str | None, *, inferred: bool) -> Proof:
        tally = self.source.tally
        rows = tally.rows if self.keyed else max(tally.rows, self.chain.stitch.rows)
        return Proof(
            grade=grade,
            rows=rows,
            requests=tally.requests,
            repairs=tally.repairs,
            chains=tally.chains,
            inversions=tally.broken,
            key=key,
            inferred=inferred,
            begun_at=tally.times[0],
            ended_at=tally.times[-1],
            assumption=tally.assumption if self.passes is None else "",
            reason=self.reason,
            flags=tuple(tally.flags),
            repeats=self.chain.repeats.rows if self.keyed else 0,
        )

    def _counted(self, proof: Proof, passes: Passes, skipped: int) -> Proof:
        """Return the proof with the results of the count."""
        counted, count = passes.counted, passes.count
        repeats = count.repeats if self.keyed else 0
        if counted and self.keyed:
            repeats = counted.rows - counted.met
        last = counted or (count.checks[-1] if count.checks else None)
        rows = count.since(counted.number if counted else 0)
        places = last.rows if last else None
        return replace(
            proof,
            rows=rows,
            repeats=repeats,
            places=places,
            counted_at=last.at if last else None,
            not_seen=None if counted else self._not_seen(rows, passes),
            order_moves=self.end is not End.NOTHING_NEW and (skipped > 0 or self._order_moves()),
            anchored_skipped=skipped,
        )

    def _order_moves(self) -> bool:
        """Whether order broke on so many pages that the next scan should start with the count."""
        return (
            self.chain.moved and ONE_IN * self.source.tally.broken_pages > self.chain.stitch.pages
        )

    def _not_seen(self, rows: int, passes: Passes) -> int | None:
        """Return how many rows were not read; None if something else may explain the difference.

        Examples are repeats, removals and rows without a key. If the order changes, repeats far
        apart cannot be recognized; then, too, passes stop showing new rows.
        """
        count = passes.count
        steady = len(set(passes.lengths)) == 1 and not passes.still
        steady = steady and not count.repeats and not count.unmarked
        if not steady or self.source.tally.contradiction or rows > passes.lengths[-1]:
            return None
        return passes.lengths[-1] - rows
