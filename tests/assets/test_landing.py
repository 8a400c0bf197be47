"""The checks of current tables and of the published file: when each fails, and its numbers."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import dagster as dg
import pytest

from assets import landing
from assets.freshness import judged
from pipelines.errors import LandingFailed
from pipelines.run import Evidence, Freshness, Landing
from pipelines.state.decisions import Kind
from pipelines.state.descriptions import Difference
from pipelines.warehouse.awaiting import Awaiting
from pipelines.warehouse.evolution import Change, What
from pipelines.warehouse.loss import ValuesLost
from pipelines.warehouse.meta import Fold
from pipelines.warehouse.profile import Profile

DAY, NOW = date(2026, 11, 21), datetime(2026, 11, 21, 8, tzinfo=UTC)
NUMBERS: tuple[Any, ...] = (*([0] * 10), NOW)
FOLD = Fold(2, "r", "default", "usage", "m", DAY, "COMPLETE", NOW, *NUMBERS)
CHANGE = Change("usage", "usage", "fee", "$.fee", What.NEW, "", "BIGINT", 1, "m", NOW)
DIFFERENCE = Difference(
    "default", "usage", "fee", "is not always there", "always there", "missing", "m", NOW
)


def fold(**numbers: Any) -> Fold:
    return replace(FOLD, **numbers)


def waiting(kind: Kind) -> Awaiting:
    return Awaiting(kind, "default", "usage", "m", DAY, 5, "5 of 9 rows are gone in m")


def evidence(**found: Any) -> Evidence:
    """Return what a quiet night leaves, but for what is named."""
    return replace(
        Evidence(Profile("usage", {"usage": 10}, ()), None, (), (), (), (), None, 0.1), **found
    )


def landed(now: Fold, before: Fold | None = None) -> dict[str, Any]:
    return {"landings": (Landing("default", DAY, now, before),)}


FAILING = [
    ("row_count_kept", landed(fold(rows=8), fold(rows=10)), {"largest drop in percent": 20.0}),
    ("row_count_kept", landed(fold(rows=9), fold(rows=10)), None),
    (
        "row_count_kept",
        landed(fold(rows=10, missing=5), fold(rows=10)),
        {"rows at the last reading": 5},
    ),
    ("row_count_kept", landed(fold(rows=12), fold(rows=10)), None),
    ("row_count_kept", {"waiting": (waiting(Kind.DISAPPEARED),)}, {}),
    ("columns_unchanged", {"changes": (CHANGE,)}, {"columns new": 1, "columns widened": 0}),
    ("columns_unchanged", {"waiting": (waiting(Kind.SCHEMA),)}, {}),
    ("required_fields", {"differences": (DIFFERENCE,), "required": 4}, {"fields that are not": 1}),
    ("required_fields", {"required": 4}, None),
    ("keys_are_unique", landed(fold(conflicts=2)), {"records of one key with other content": 2}),
    (
        "keys_are_unique",
        {"current": Profile("usage", {"usage": 10}, (), 3)},
        {"rows whose key another row has": 3},
    ),
]


@pytest.mark.parametrize(("name", "found", "numbers"), FAILING)
def test_a_check_fails_with_numbers_and_words(
    name: str, found: dict[str, Any], numbers: Mapping[str, int | float] | None
) -> None:
    results = {each.check_name: each for each in landing.results("usage", evidence(**found), [])}
    result = results.pop(name)
    assert result.passed is (numbers is None)
    assert {label: result.metadata[label].value for label in numbers or {}} == (numbers or {})
    assert ("what to do" in result.metadata) is not result.passed
    others = {"as_described"} if "differences" in found else set()
    assert {each for each, other in results.items() if not other.passed} == others


def test_a_key_that_is_twice_in_the_table_is_an_error_and_others_warn() -> None:
    twice = evidence(current=Profile("usage", {"usage": 10}, (), 1))
    for found, severity in ((twice, "ERROR"), (evidence(**landed(fold(conflicts=1))), "WARN")):
        (result,) = [
            each
            for each in landing.results("usage", found, [])
            if each.check_name == "keys_are_unique"
        ]
        assert result.severity is dg.AssetCheckSeverity[severity]


def test_values_that_would_be_lost_are_told_apart_from_other_failures() -> None:
    wrapped = LandingFailed("m was folded and cannot be folded again")
    wrapped.__cause__ = ValuesLost("2 values were sent at fee")
    for failure, failed in (
        (LandingFailed("no"), {"folded"}),
        (wrapped, {"folded", "nothing_lost"}),
    ):
        results = landing.results("usage", evidence(), [failure])
        assert {each.check_name for each in results if not each.passed} == failed


def test_old_and_absent_lists_are_stale() -> None:
    def aged(hours: float) -> Freshness:
        row = (DAY, NOW - timedelta(hours=hours), 10)
        return Freshness("default", "usage", NOW, timedelta(hours=36), row)

    assert judged([aged(1), aged(35)]).passed
    result = judged([aged(1), aged(37), replace(aged(1), stream="billing", row=None)])
    assert not result.passed
    assert result.metadata["lists that are stale"].value == 2
    assert result.metadata["hours since the oldest was read"].value == 37.0
    assert result.metadata["which"].value == "default/usage · default/billing"
    assert "| never " in str(result.metadata["freshness"].value)
