"""What a proof says to people."""

from dataclasses import replace
from datetime import timedelta

import pytest

from pipelines.state.proof import Counting, Grade, Proof
from tests.virtual import EPOCH

PROOF = Proof(
    Grade.COMPLETE, 30, 5, 0, 1, 0, key="id", inferred=True, begun_at=EPOCH, ended_at=EPOCH
)
ALONE = replace(PROOF, key=None, grade=Grade.SNAPSHOT, requests=1)
SET = "may be there twice. If you know the key, set streams.usage.key."
ENDS = [
    (PROOF, "Primary key: id (detected)."),
    (replace(PROOF, inferred=False), "00:00:00 UTC."),
    (replace(PROOF, key=None), SET),
    (ALONE, SET),
    (replace(PROOF, key=None, rows=0), "00:00:00 UTC."),  # nothing has to be identified
]


@pytest.mark.parametrize(("proof", "end"), ENDS)
def test_a_proof_names_the_primary_key(proof: Proof, end: str) -> None:
    begun = EPOCH.replace(hour=0, minute=0, second=0)
    dated = replace(proof, begun_at=begun, ended_at=begun + timedelta(microseconds=1))
    assert dated.sentence("usage").endswith(end)


COUNTS = [
    (Counting(5987, 6000, 4), "counting, 5,987 of 6,000 places seen, pass 4"),
    (Counting(1500, None, 1), "counting, 1,500 rows seen, pass 1"),
]


@pytest.mark.parametrize(("counting", "words"), COUNTS)
def test_a_count_says_how_far_it_is(counting: Counting, words: str) -> None:
    assert counting.words == words
