"""Every schedule of small lists: nothing, one removal or one addition anywhere before each page.

`make exhaustive` tries them all on every core, some minutes; the suite tries a small part.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from multiprocessing import Pool

from pipelines.state.proof import Grade
from tests.api.moving import Moving, Rows


@dataclass(frozen=True)
class Small:
    """Lists of so many rows, read in pages of so many; so many pages have a change before them."""

    rows: int
    limit: int
    pages: int

    @property
    def events(self) -> int:
        """How many things can happen before a page: nothing, a removal, an addition."""
        return 1 + self.rows + (self.rows + 1)

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
        if event > self.size:
            rows.insert(min(len(rows), event - self.size - 1), 100 + number)
        elif event and rows:
            self.lived.discard(rows.pop(min(len(rows), event) - 1))


def tried(small: Small, first: int) -> Counter[Grade]:
    """Try every schedule that begins with an event; raise AssertionError at a false claim."""
    grades: Counter[Grade] = Counter()
    for others in product(range(small.events), repeat=small.pages - 1):
        schedule = Schedule((first, *others), small.rows, set(range(small.rows)))
        moving = Moving(list(range(small.rows)), small.limit, schedule)
        proof = moving.read()
        grades[proof.grade] += 1
        whole = schedule.lived <= moving.union
        if proof.inversions or (proof.grade in {Grade.SNAPSHOT, Grade.COMPLETE} and not whole):
            raise AssertionError(small, schedule.events, proof)
    return grades


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
