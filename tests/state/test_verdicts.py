"""The proof in words, as JSON, and what its grades mean."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from pipelines.state import proof as proofs
from pipelines.state.proof import Grade, Proof
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
COST = "10,004 rows, 105 requests, 1 repair."
EXISTED = "Contains every row that existed throughout 02:00:01–02:00:22 UTC."  # noqa: RUF001
LACKING = "Rows may be lacking; none counts as missing."
COUNTED: dict[str, Any] = {"places": 6000, "counted_at": BEGUN + timedelta(seconds=11)}
LOADED = "The rows are loaded; rows that are not among them do not count as missing."

# What differs from the complete reading, and what the user reads.
SENTENCES: list[tuple[dict[str, object], str]] = [
    ({}, f"usage: COMPLETE. {COST} {EXISTED}"),
    (
        {"inferred": True, "repairs": 0, "rows": 1},
        f"usage: COMPLETE. 1 row, 105 requests. {EXISTED} Primary key: usageId (detected).",
    ),
    (
        {"chains": 2, "assumption": "if nothing moved while the last chain was read"},
        (
            f"usage: COMPLETE. {COST} {EXISTED} "
            "Assumption: if nothing moved while the last chain was read."
        ),
    ),
    (
        {"repeats": 60},
        (
            f"usage: COMPLETE. {COST} {EXISTED} 60 rows repeated under the same key; each key is "
            "loaded once."
        ),
    ),
    (
        {"grade": Grade.COMPLETE_BY_COUNT, "rows": 6003, "repairs": 0, "repeats": 1, **COUNTED},
        (
            "usage: COMPLETE BY COUNT. 6,003 rows, 105 requests. The order of the list changes, so "
            "its rows were counted: contains exactly the 5,999 rows that the list had at 02:00:12 "
            "UTC, and rows added until 02:00:22 UTC. 1 row repeated under the same key; each key "
            "is loaded once."
        ),
    ),
    (
        {"grade": Grade.PARTIAL, "rows": 5987, "not_seen": 13, "reason": "no more time", **COUNTED},
        (
            "usage: PARTIAL. 5,987 distinct rows seen; the list had 6,000 places at 02:00:12 UTC "
            f"(13 not seen). 105 requests. No more time. {LOADED}"
        ),
    ),
    (
        {"grade": Grade.PARTIAL},
        (
            "usage: PARTIAL. 10,004 distinct rows seen; how many rows the list has is not known. "
            f"105 requests. {LOADED}"
        ),
    ),
    (
        {"grade": Grade.SNAPSHOT, "requests": 1, "repairs": 0, "flags": ("a", "b")},
        (
            "usage: SNAPSHOT. 10,004 rows, 1 request. The list as it was at 02:00:22 UTC, in one "
            "page. The service contradicted itself: a; b."
        ),
    ),
]
# Of releases before 0.2: no scan ends so any more.
LEGACY: list[tuple[dict[str, object], str]] = [
    (
        {"grade": Grade.COMPLETE_FOR_UNMOVED, "inversions": 2},
        (
            f"usage: COMPLETE FOR UNMOVED. {COST} Contains every row that kept its position "
            f"throughout 02:00:01–02:00:22 UTC. {LACKING}"  # noqa: RUF001
        ),
    ),
    (
        {"grade": Grade.UNSTABLE_ORDER, "chains": 5},
        f"usage: UNSTABLE ORDER. {COST} The order changed in each of 5 readings. {LACKING}",
    ),
    (
        {"grade": Grade.NOT_PROVEN, "reason": "server does not advance (offset 400 -> 400)"},
        (
            f"usage: NOT PROVEN. {COST} Server does not advance (offset 400 -> 400). The rows are "
            "not loaded; the last published rows stay."
        ),
    ),
]


@pytest.mark.parametrize(("differs", "sentence"), SENTENCES + LEGACY)
def test_what_the_user_reads(differs: dict[str, object], sentence: str) -> None:
    assert replace(COMPLETE, **differs).sentence("usage") == sentence  # type: ignore[arg-type]


# Grade, and whether it is folded, counts missing rows, is marked, and its exit code.
MEANINGS = [
    (Grade.SNAPSHOT, True, True, False, 0),
    (Grade.COMPLETE, True, True, False, 0),
    (Grade.COMPLETE_BY_COUNT, True, True, False, 0),
    (Grade.PARTIAL, True, False, True, 3),
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
    "proof",
    [
        COMPLETE,
        replace(COMPLETE, key=None, flags=("x",)),
        replace(COMPLETE, grade=Grade.PARTIAL, not_seen=13, order_moves=True, **COUNTED),
    ],
)
def test_a_proof_comes_back_from_json_as_it_was(proof: Proof) -> None:
    assert proofs.from_json(json.loads(json.dumps(proofs.to_json(proof)))) == proof


def test_a_proof_of_an_older_release_stays_readable() -> None:
    """It has an estimate, which nothing needs any more, and lacks what counting added."""
    values = proofs.to_json(replace(COMPLETE, grade=Grade.UNSTABLE_ORDER))
    new = ("repeats", "places", "counted_at", "not_seen", "order_moves", "anchored_skipped")
    old = {name: value for name, value in values.items() if name not in new}
    found = proofs.from_json(old | {"estimate": {"low": 1990, "high": 2060}})
    assert found == replace(COMPLETE, grade=Grade.UNSTABLE_ORDER)
    assert found.sentence("usage").startswith("usage: UNSTABLE ORDER. ")
