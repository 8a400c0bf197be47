"""The checks of what was read: when each fails, and its numbers."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from assets import archive
from pipelines.errors import ContractBroken, PartnerSyncError
from pipelines.state.journal import ManifestRow
from pipelines.state.proof import Grade, Proof

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
PROOF = Proof(Grade.COMPLETE, 5940, 14, 0, 1, 0, "id", False, NOON, NOON)
COUNTED = {"places": 6000, "counted_at": NOON}
BOTH = {"distinct rows seen": 5940, "places of the list": 6000}


def read(**differs: Any) -> ManifestRow:
    """Return a reading whose proof differs from a complete one."""
    proof = replace(PROOF, **differs)
    return ManifestRow("default", "usage", NOON.date(), 1, "s", "f", 14, 5940, proof, NOON)


def numbers(result: dg.AssetCheckResult) -> dict[str, Any]:
    """Return the numbers of a result by their label."""
    return {label: each.value for label, each in result.metadata.items()}


# The outcomes of days, whether the check passes, and numbers that it shows.
PROOFS: list[tuple[list[ManifestRow | PartnerSyncError], bool, dict[str, Any]]] = [
    ([read()], True, {"readings": 1}),
    ([read(grade=Grade.SNAPSHOT), read(grade=Grade.COMPLETE_BY_COUNT, **COUNTED)], True, {}),
    ([read(grade=Grade.PARTIAL, **COUNTED)], False, BOTH),
    ([read(), read(grade=Grade.PARTIAL)], False, {"readings that are not proven complete": 1}),
    ([read(grade=Grade.UNSTABLE_ORDER)], False, {"distinct rows seen": 5940}),
    ([ContractBroken("no page")], False, {"readings": 0}),
]


@pytest.mark.parametrize(("outcomes", "passed", "shown"), PROOFS)
def test_only_a_reading_proven_complete_passes(
    outcomes: list[ManifestRow | PartnerSyncError], shown: dict[str, Any], *, passed: bool
) -> None:
    result = archive.proven("usage", outcomes)
    assert (result.passed, result.check_name) == (passed, "proven")
    assert shown.items() <= numbers(result).items()
    assert ("what to do" in result.metadata) is not passed


def test_a_partial_reading_says_both_numbers_in_words() -> None:
    result = archive.proven("usage", [read(grade=Grade.PARTIAL, **COUNTED)])
    said = "5,940 distinct rows seen; the list had 6,000 places at 12:00:00 UTC"
    assert said in str(numbers(result)["proofs"])


def test_repeated_rows_are_a_warning_with_their_number() -> None:
    assert archive.no_repeats("usage", [read(), ContractBroken("no page")]).passed
    result = archive.no_repeats("usage", [read(repeats=60), read(), read(repeats=2)])
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    shown = {"stream": "usage", "repeated rows": 62, "readings with repeated rows": 2}
    assert shown.items() <= numbers(result).items()
    assert "60 rows repeated under the same key" in str(numbers(result)["proofs"])
    assert {"what it means", "what to do"} <= set(result.metadata)
