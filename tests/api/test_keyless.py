"""Lists whose records have no key: equal records are different ones, and none of them is lost."""

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from pipelines.api.reader import Reader
from pipelines.api.stitch import Taken
from pipelines.state.proof import Grade, Proof
from tests.api.moving import Churn, Moving, Rows, drive

CLAIMS = {Grade.SNAPSHOT, Grade.COMPLETE, Grade.COMPLETE_BY_COUNT}


@dataclass
class Alike:
    """A list of records that say one of so many things; 0 is: each something else."""

    moving: Moving
    contents: int
    salt: int
    changed: list[int] = field(default_factory=list)  # numbers of the requests before which it was

    def says(self, row: int) -> int:
        return Random(row * 7919 + self.salt).randrange(self.contents) if self.contents else row

    async def take(self, offset: int, step: int = 0) -> Taken:
        before = list(self.moving.rows)
        taken = await self.moving.take(offset, step)
        if before != self.moving.rows:
            self.changed.append(taken.number)
        return replace(taken, keys=[b"%d" % self.says(row) for row in self.moving.shown[-1]])

    @property
    def last_chain(self) -> int:
        """The number of the request that began the last chain; the one after it is the witness."""
        asked = self.moving.asked
        return len(asked) - 2 - asked[:-1][::-1].index(0)

    def read(self) -> tuple[Proof, Counter[int]]:
        """Return the proof, and how often each content is in the tables by the rule of the fold."""
        reader = Reader(self.take, keyed=False)
        proof = drive(reader.read(None))
        stitched = dict(reader.stitched)
        loaded = range(reader.superseded, len(self.moving.shown))
        others = [number for number in loaded if number not in stitched]
        there, equals = set(), Counter[int]()
        for number in [*others, *stitched]:
            kept, apart = stitched.get(number, 0), Counter[int]()
            for place, row in enumerate(self.moving.shown[number]):
                said = self.says(row)
                (equals if place < kept else apart)[said] += 1
                there.add((said, (equals[said] if kept else 0) + apart[said]))
        return proof, Counter(said for said, _ordinal in there)


def schedule(seed: int, contents: int) -> tuple[Alike, Churn]:
    chance = Random(seed)
    rate, last = chance.choice([0, 0.1, 0.5, 1]), chance.choice([5, 15, 40])
    churn = Churn(chance, rate, chance.random(), last=last)
    rows: Rows = list(range(chance.randint(0, 40)))
    return Alike(Moving(rows, chance.choice([5, 8, 10]), churn), contents, seed), churn


@pytest.mark.parametrize("contents", [0, 2, 20, 100])
def test_no_schedule_makes_a_false_claim_or_a_record_too_many(contents: int) -> None:
    grades: Counter[Grade] = Counter()
    for seed in range(250):
        alike, churn = schedule(seed, contents)
        proof, there = alike.read()
        grades[proof.grade] += 1
        ever = Counter(alike.says(row) for row in {r for p in alike.moving.shown for r in p})
        assert there <= ever, seed
        if proof.grade in CLAIMS:
            lived = Counter(alike.says(row) for row in churn.lived)
            named = proof.assumption == "if nothing changed while the last chain was read"
            excused = named and any(number > alike.last_chain for number in alike.changed)
            assert excused or lived <= there, seed
    assert grades[Grade.COMPLETE] > 100


def test_records_that_all_say_something_else_need_one_reading() -> None:
    proofs = [schedule(seed, 0)[0].read()[0] for seed in range(50)]
    assert {proof.chains for proof in proofs} == {1}


def test_records_in_another_order_on_every_page_are_counted_or_partial() -> None:
    def change(rows: Rows, number: int) -> None:
        Random(number).shuffle(rows)

    for contents in (0, 20):
        alike = Alike(Moving(list(range(60)), 10, change), contents, 1)
        proof, there = alike.read()
        assert proof.grade in {Grade.COMPLETE_BY_COUNT, Grade.PARTIAL}
        everything = Counter(alike.says(row) for row in range(60))
        assert there == everything or proof.grade is Grade.PARTIAL
