"""Every schedule of small lists: nothing, one removal or one addition anywhere before each page.

No grade that says complete may lack a row that was there throughout.

`make exhaustive` tries them all on every core, some minutes; the suite tries a small part.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from multiprocessing import Pool

from pipelines.state.proof import Grade, Proof
from tests.api.moving import Moving, Rows


@dataclass(frozen=True)
class Small:
    """Lists of so many rows, read in pages of so many; so many pages have a change before them.

    `counted` lists are counted from the start, and rows also move to either end.
    """

    rows: int
    limit: int
    pages: int
    counted: bool = False

    @property
    def events(self) -> int:
        """How many things can happen before a page: nothing, a removal, an addition, a move."""
        return 1 + self.rows + (self.rows + 1) + (2 * self.rows if self.counted else 0)

    @property
    def cases(self) -> int:
        """How many schedules there are."""
        return int(self.events**self.pages)


ALL = (
    Small(4, 3, 5),
    Small(5, 3, 5),
    Small(6, 4, 4),
    Small(7, 4, 4),
    Small(8, 5, 4),
    Small(9, 5, 4),
    Small(3, 2, 4, counted=True),
    Small(4, 3, 4, counted=True),
    Small(6, 4, 4, counted=True),
    Small(8, 4, 3, counted=True),
)


@dataclass
class Schedule:
    """One schedule: what happens before each page after the first."""

    events: tuple[int, ...]
    size: int
    lived: set[int]

    def __call__(self, rows: Rows, number: int) -> None:
        if not 1 <= number <= len(self.events):
            return
        event = self.events[number - 1]
        moved, head = divmod(event - 2 * self.size - 2, 2)
        if moved >= 0 and rows:
            rows.insert(0 if head else len(rows), rows.pop(min(len(rows) - 1, moved)))
        elif self.size < event <= 2 * self.size + 1:
            rows.insert(min(len(rows), event - self.size - 1), 100 + number)
        elif 0 < event <= self.size and rows:
            self.lived.discard(rows.pop(min(len(rows), event) - 1))


def tried(small: Small, first: int) -> Counter[Grade]:
    """Try every schedule that begins with an event; raise AssertionError at a false claim."""
    grades: Counter[Grade] = Counter()
    for others in product(range(small.events), repeat=small.pages - 1):
        schedule = Schedule((first, *others), small.rows, set(range(small.rows)))
        moving = Moving(list(range(small.rows)), small.limit, schedule)
        proof = moving.read(last=_counted(small) if small.counted else None)
        grades[proof.grade] += 1
        if not _true(schedule, moving, proof):
            raise AssertionError(small, schedule.events, proof)
    return grades


@cache
def _counted(small: Small) -> Proof:
    """Return the proof of a scan after which the next one begins with the count."""
    return replace(Moving(list(range(small.rows)), small.limit).read(), order_moves=True)


def _true(schedule: Schedule, moving: Moving, proof: Proof) -> bool:
    """Whether what a proof says of a schedule is so."""
    whole = schedule.lived <= moving.union
    numbers = [proof.repeats, proof.places or 0, proof.not_seen or 0]
    seen = proof.grade is not Grade.COMPLETE_BY_COUNT or proof.rows >= len(schedule.lived)
    grade = proof.grade.counts_missing and (whole and proof.repeats == 0)
    partial = proof.grade is Grade.PARTIAL and bool(proof.reason)
    return min(numbers) >= 0 and seen and (grade or partial) and proof.rows == len(moving.union)


def _parts() -> Iterator[tuple[Small, int]]:
    for small in ALL:
        for first in range(small.events):
            yield small, first


def main() -> None:
    """Try all; print how many there were of each grade."""
    grades: Counter[Grade] = Counter()
    with Pool() as pool:
        for found in pool.starmap(tried, _parts(), chunksize=1):
            grades += found
    counts = ", ".join(f"{count:,} {grade.words}" for grade, count in grades.most_common())
    print(f"{grades.total():,} schedules: {counts}; no false claim")  # noqa: T201 its product


if __name__ == "__main__":
    main()
