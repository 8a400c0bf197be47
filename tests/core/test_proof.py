from typing import Any

import msgspec
import pytest

from pipelines.core.proof import Completeness, ListTraits, Method
from tests.archive.scans import START, proof

SIZE, SPAN = "3 rows, 2 requests.", "existed throughout 23:59:58–00:00:58 UTC"  # noqa: RUF001
IF = ", if no row changed its place meanwhile."
ONE_PAGE: dict[str, Any] = {"method": Method.ONE_PAGE, "traits": ListTraits(), "ended_at": START}
PARTIAL: dict[str, Any] = {"complete": False, "not_seen": 1999, "reason": "it moved"}
SENTENCES: list[tuple[dict[str, Any], str]] = [
    ({}, f"COMPLETE. {SIZE} Contains every row that {SPAN}{IF} Primary key: usageId."),
    ({"chains": 1}, f"COMPLETE. {SIZE} Contains every row that {SPAN}{IF} Primary key: usageId."),
    ({"chains": 3}, f"COMPLETE. {SIZE} Contains every row that {SPAN} (3 readings agree). P"),
    ({"method": Method.COUNTED}, f"COMPLETE. {SIZE} Contains every row that {SPAN} (counted). P"),
    (
        {"conflicting": {1: ((3, 4),), 2: ((0, 2),)}},
        f"COMPLETE. {SIZE} 3 more records are in quarantine. Contains every row",
    ),
    (ONE_PAGE, f"COMPLETE. {SIZE} One page held the whole list at 23:59:58 UTC. No primary key"),
    (PARTIAL, f"PARTIAL. {SIZE} 1,999 rows were not seen. Reason: it moved. No row is deleted."),
]


@pytest.mark.parametrize(("changed", "sentence"), SENTENCES)
def test_the_sentence_says_what_is_proven(changed: dict[str, Any], sentence: str) -> None:
    completeness = msgspec.structs.replace(proof({1: ((0, 3),)}), **changed)
    assert completeness.sentence("usage").startswith(f"usage: {sentence}")
    text = msgspec.json.encode(completeness)
    assert msgspec.json.decode(text, type=Completeness) == completeness
