"""The proof in words, as JSON, and what its grades mean."""

import json
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from pipelines.state import proof as proofs
from pipelines.state.proof import Estimate, Grade, Proof
from tests.virtual import EPOCH

BEGUN = EPOCH.replace(hour=2, second=1)
COMPLETE = Proof(
    Grade.COMPLETE,
    rows=10_004,
    requests=105,
    repairs=1,
    chains=1,
    inversions=0,
    key="usageId",
    inferred=False,
    begun_at=BEGUN,
    ended_at=BEGUN + timedelta(seconds=21),
    assumption="if no row changed its place among the others",
)
ENDING = "Rows added or removed in those 21 s may or may not be."
ROWS = "all rows that existed from 02:00:01 to 02:00:22"

# What differs from the complete reading, and what the user reads.
SENTENCES: list[tuple[dict[str, object], str]] = [
    ({}, f"usage: COMPLETE — {ROWS} are here (10,004 rows, 105 requests, 1 repair). {ENDING}"),
    (
        {"inferred": True, "repairs": 0, "rows": 1},
        (
            f"usage: COMPLETE — {ROWS} are here (1 row, 105 requests). {ENDING} "
            "Rows are told apart by usageId, found by its name."
        ),
    ),
    (
        {"chains": 2, "assumption": "if nothing moved while the last chain was read"},
        (
            f"usage: COMPLETE — {ROWS} are here, if nothing moved while the last chain was read, "
            f"(10,004 rows, 105 requests, 1 repair). {ENDING}"
        ),
    ),
    (
        {"grade": Grade.COMPLETE_FOR_UNMOVED, "inversions": 2, "repairs": 2},
        (
            f"usage: COMPLETE FOR UNMOVED — {ROWS} and kept their place are here (10,004 rows, "
            f"105 requests, 2 repairs); 2 changes of order seen. {ENDING}"
        ),
    ),
    (
        {
            "grade": Grade.UNSTABLE_ORDER,
            "chains": 5,
            "rows": 1753,
            "estimate": Estimate(1990, 2060),
        },
        (
            "usage: UNSTABLE ORDER — order changed in each of 5 readings; about 1,990–2,060 rows "  # noqa: RUF001
            "exist, 1,753 read; they were folded, nothing counts as missing."
        ),
    ),
    (
        {"grade": Grade.NOT_PROVEN, "reason": "server does not advance (offset 400 -> 400)"},
        (
            "usage: NOT PROVEN — server does not advance (offset 400 -> 400); 10,004 read in "
            "105 requests; they are archived and not folded, the last published rows stay."
        ),
    ),
    (
        {"grade": Grade.SNAPSHOT, "requests": 1, "repairs": 0, "flags": ("a", "b")},
        (
            "usage: SNAPSHOT — the list as it was at 02:00:22, in one page (10,004 rows, 1 "
            "request). Seen on the way: a; b."
        ),
    ),
]


@pytest.mark.parametrize(("differs", "sentence"), SENTENCES)
def test_what_the_user_reads(differs: dict[str, object], sentence: str) -> None:
    assert replace(COMPLETE, **differs).sentence("usage") == sentence  # type: ignore[arg-type]


# Grade, and whether it is folded, counts missing rows, is marked, and its exit code.
MEANINGS = [
    (Grade.SNAPSHOT, True, True, False, 0),
    (Grade.COMPLETE, True, True, False, 0),
    (Grade.COMPLETE_FOR_UNMOVED, True, False, False, 0),
    (Grade.UNSTABLE_ORDER, True, False, True, 3),
    (Grade.NOT_PROVEN, False, False, True, 3),
]


@pytest.mark.parametrize("meaning", MEANINGS, ids=str)
def test_what_a_grade_means(meaning: tuple[Grade, bool, bool, bool, int]) -> None:
    grade = meaning[0]
    found = (grade, grade.folded, grade.counts_missing, grade.marked, grade.exit_code)
    assert found == meaning
    assert {each[0] for each in MEANINGS} == set(Grade)


@pytest.mark.parametrize(
    "proof", [COMPLETE, replace(COMPLETE, key=None, flags=("x",), estimate=Estimate(1, 2))]
)
def test_a_proof_comes_back_from_json_as_it_was(proof: Proof) -> None:
    assert proofs.from_json(json.loads(json.dumps(proofs.to_json(proof)))) == proof


def test_the_estimate_holds_19_times_of_20() -> None:
    """By drawing two samples of half a list of 2,000, a thousand times."""
    held = 0
    for seed in range(1000):
        chance = Random(seed)
        first, second = (set(chance.sample(range(2000), 1000)) for _half in range(2))
        found = proofs.chapman(len(first), len(second), len(first & second))
        assert found is not None
        held += found.low <= 2000 <= found.high
    assert 930 <= held <= 970


def test_two_samples_with_nothing_in_common_say_nothing() -> None:
    assert proofs.chapman(10, 10, 0) is None
