from datetime import UTC, datetime

import msgspec
import pytest

from pipelines.core.completeness import Completeness, ListMemory, Method

STARTED = datetime(2026, 10, 1, 4, 23, 56, tzinfo=UTC)
ENDED = datetime(2026, 10, 1, 4, 24, 5, tzinfo=UTC)


def proof(*, complete: bool, method: Method, not_seen: int | None = None) -> Completeness:
    return Completeness(
        complete=complete,
        method=method,
        rows=1999,
        repeated=0,
        not_seen=not_seen,
        reason="" if complete else "has_more stayed true",
        requests=22,
        started_at=STARTED,
        ended_at=ENDED,
        used={1: ((0, 100),)},
        conflicting={},
        memory=ListMemory(key="billingId", key_decided=True, length=1999),
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            proof(complete=True, method=Method.OVERLAPPING_PAGES),
            (
                "billing: COMPLETE. 1,999 rows, 22 requests. Contains every row that existed "
                "throughout 04:23:56–04:24:05 UTC. Primary key: billingId."  # noqa: RUF001
            ),
        ),
        (
            proof(complete=False, method=Method.COUNTED, not_seen=3),
            (
                "billing: PARTIAL. 1,999 rows, 22 requests. 3 rows were not seen. "
                "Reason: has_more stayed true. No row is ended."
            ),
        ),
    ],
    ids=["complete", "partial"],
)
def test_the_sentence_says_what_is_proven(given: Completeness, sentence: str) -> None:
    assert given.sentence("billing") == sentence


def test_a_proof_survives_json() -> None:
    given = proof(complete=True, method=Method.COUNTED)
    assert msgspec.json.decode(msgspec.json.encode(given), type=Completeness) == given
