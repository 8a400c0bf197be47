"""What the demo says of planted errors: a break counts where it is the same money, or as other."""

from decimal import Decimal
from typing import Any

from pipelines.cli.demo import FOUND_BY, judged
from sandbox.data.plant import COUNTS

PLANTED = {"partner_id": "p", "other_id": "stranger", "month": "2026-09-01", "currency": "EUR"}
WHERE = ("p", "2026-09-01", "EUR")
STRANGER = ("stranger", "2026-09-01", "EUR")


def planted(kind: str, amount: str) -> dict[str, str]:
    return {"kind": kind, "amount": amount, **PLANTED}


def counted(breaks: list[tuple[Any, ...]], *errors: dict[str, str]) -> dict[str, tuple[Any, Any]]:
    rows = {str(row["error"]): (row["planted"], row["found"]) for row in judged(errors, breaks)}
    return {kind: counts for kind, counts in rows.items() if counts != (0, 0)}


def test_every_kind_that_the_sandbox_plants_is_looked_for() -> None:
    assert FOUND_BY.keys() == COUNTS.keys()


def test_what_is_found_to_the_cent_counts() -> None:
    breaks = [
        ("usage_without_billing", "late", *WHERE, Decimal("3.50")),
        ("orphan_partners", "usage of an unknown partner", *STRANGER, Decimal("7.00")),
    ]
    errors = (planted("late_usage", "3.5"), planted("orphan_usage", "7"))
    assert counted(breaks, *errors) == {"late_usage": (1, 1), "orphan_usage": (1, 1)}


def test_another_amount_cause_or_partner_is_not_found_but_something_else() -> None:
    breaks = [
        ("usage_without_billing", "late", *WHERE, Decimal("3.51")),
        ("usage_without_billing", "missing", *WHERE, Decimal("3.50")),
        ("period_gaps", "nobody knows", *WHERE, None),
    ]
    found = counted(breaks, planted("late_usage", "3.50"))
    assert found == {"late_usage": (1, 0), "any other": (0, 3)}
