"""Two tolerances a line, whichever allows more; what they allow is shown and is no break."""

from decimal import Decimal

import duckdb
import pytest

from pipelines.reconciliation import Example
from pipelines.settings.mapping import Mapping
from tests.reconciliation.examples import laid_out

USED = {"id": "u1", "partner": "P", "month": "2026-09-01", "currency": "EUR", "amount": "200.00"}
LINE = {**USED, "id": "b1#0", "bill": "b1", "reference": "u1"}
# billed, tolerance in minor units, in percent, status
CASES = [
    ("200.00", 0, "0", "plainly equal"),
    ("200.01", 0, "0", "amount"),
    ("200.01", 1, "0", "within tolerance"),
    ("199.99", 1, "0", "within tolerance"),
    ("200.02", 1, "0", "amount"),
    ("201.00", 0, "0.5", "within tolerance"),
    ("201.01", 0, "0.5", "amount"),
    ("200.02", 0, "0.009", "amount"),
    ("200.02", 0, "0.01", "within tolerance"),
    ("200.02", 1, "0.01", "within tolerance"),
    ("200.02", 2, "0.001", "within tolerance"),
]


@pytest.mark.parametrize(("billed", "minor", "percent", "status"), CASES)
def test_a_difference_within_either_is_no_break(
    billed: str, minor: int, percent: str, status: str
) -> None:
    own = Mapping.model_validate({"tolerance": {"line_minor": minor, "line_percent": percent}})
    example = Example("", [USED], [{**LINE, "amount": billed}])
    with duckdb.connect() as database:
        laid_out(database, example, own)
        found = database.execute("SELECT status, billed_amount FROM matched").fetchall()
    wanted = [] if status == "plainly equal" else [(status, Decimal(billed))]
    assert found == wanted
