from datetime import UTC, datetime

import msgspec
import pytest

from pipelines.core.completeness import Completeness, ListMemory, Method

PROOF = Completeness(
    complete=True,
    method=Method.OVERLAPPING_PAGES,
    rows=1999,
    repeated=0,
    not_seen=None,
    reason="",
    requests=22,
    started_at=datetime(2026, 10, 1, 4, 23, 56, tzinfo=UTC),
    ended_at=datetime(2026, 10, 1, 4, 24, 5, tzinfo=UTC),
    used={1: ((0, 100),)},
    conflicting={},
    memory=ListMemory(key="billingId", key_decided=True, length=1999),
)
SPAN = "existed throughout 04:23:56–04:24:05 UTC"  # noqa: RUF001
SIZE = "1,999 rows, 22 requests."
ONE_PAGE = {"memory": ListMemory(), "method": Method.ONE_PAGE}
PARTIAL = {"complete": False, "not_seen": 3, "reason": "has_more stayed true"}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({}, f"COMPLETE. {SIZE} Contains every row that {SPAN}. Primary key: billingId."),
        (
            ONE_PAGE,
            f"COMPLETE. {SIZE} One page held the whole list at 04:24:05 UTC. No primary key",
        ),
        (PARTIAL, f"PARTIAL. {SIZE} 3 rows were not seen. Reason: has_more stayed true. No row is"),
    ],
    ids=["complete", "one page", "partial"],
)
def test_the_sentence_says_what_is_proven(changed: dict[str, object], sentence: str) -> None:
    proof = msgspec.structs.replace(PROOF, **changed)
    assert proof.sentence("billing").startswith(f"billing: {sentence}")
    assert msgspec.json.decode(msgspec.json.encode(proof), type=Completeness) == proof
