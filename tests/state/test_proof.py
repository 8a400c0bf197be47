"""What a proof says to people."""

from dataclasses import replace

import pytest

from pipelines.state.proof import Grade, Proof
from tests.virtual import EPOCH

PROOF = Proof(
    Grade.COMPLETE, 30, 5, 0, 1, 0, key="id", inferred=True, begun_at=EPOCH, ended_at=EPOCH
)
SET = "where you know one, set streams.usage.key."
TWICE = f"{SET} One that changed meanwhile may be here twice, as two rows."
ALONE = replace(PROOF, key=None, grade=Grade.SNAPSHOT, requests=1)
ENDS = [
    (PROOF, "Rows are told apart by id, found by its name."),
    (replace(PROOF, inferred=False), "may or may not be."),
    (replace(PROOF, key=None), TWICE),
    (ALONE, SET),
]


@pytest.mark.parametrize(("proof", "end"), ENDS)
def test_a_proof_says_what_tells_rows_apart(proof: Proof, end: str) -> None:
    assert proof.sentence("usage").endswith(end)
