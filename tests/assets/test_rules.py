"""Checks of rules: open breaks fail them, and so does not having been evaluated."""

from decimal import Decimal

from assets.checks import ERROR, WARN
from assets.rules import CHECKS, results
from pipelines.reconciliation import RULES
from pipelines.run import Judged

JUDGING = [rule for rule in RULES if rule.severity]
SUMS = [{"currency": "EUR", "breaks": 2, "difference": Decimal("-12.40")}]


def test_every_rule_that_finds_breaks_is_a_check() -> None:
    assert list(CHECKS) == [rule.name for rule in JUDGING]


def test_open_breaks_fail_a_check_and_grave_ones_are_errors() -> None:
    none, some, grave, unsaid = (
        next(results([Judged(JUDGING[0], why, breaks, 1, severe, SUMS if breaks else [])]))
        for why, breaks, severe in [
            ("", 0, False),
            ("", 2, False),
            ("", 2, True),
            ("usage.amount is not mapped", 0, False),
        ]
    )
    assert [each.passed for each in (none, some, grave, unsaid)] == [True, False, False, False]
    assert [each.severity for each in (some, grave, unsaid)] == [WARN, ERROR, WARN]
    assert "-12.40" in str(some.metadata["differences"].value)
    assert unsaid.metadata["not evaluated"].value == "usage.amount is not mapped"
