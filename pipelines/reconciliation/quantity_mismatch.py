"""The same usage with another quantity on its bill."""

from pipelines.reconciliation.base import BOTH_SIDES, LINE, USED, Example, Rule, Severity

SQL = f"""
WITH wrong AS (
    SELECT m.connection, m.key, m.partner, m.month, m.currency,
           CASE WHEN max(u.updated_at) > max(b.issued_at) THEN 'restated after bill'
                ELSE 'quantity' END AS cause
    FROM matched m JOIN odd_used u USING (connection, key) JOIN odd_billed b USING (connection, key)
    WHERE m.status = 'quantity' GROUP BY ALL
)
{BOTH_SIDES}"""

TEN = {**USED, "quantity": "10"}
BILLED = {**LINE, "quantity": "10", "issued_at": "2026-09-30 22:00:00Z"}

RULE = Rule(
    name="quantity_mismatch",
    question="Where does a bill show another quantity than the usage it is of?",
    sql=SQL,
    means="Usage and bill do not agree on how much was used. `restated after bill`: the usage was "
    "changed when its bill had been issued.",
    remedy="A restated quantity belongs on a correction; anything else is asked about.",
    severity=Severity.HIGH,
    needs=("key", "usage.id", "usage.quantity", "billing.line_quantity"),
    examples=(
        Example("equal", [TEN], [BILLED]),
        Example("more", [TEN], [{**BILLED, "quantity": "11"}], found=["quantity"]),
        Example(
            "restated",
            [{**TEN, "quantity": "12", "updated_at": "2026-10-03 23:45:00Z"}],
            [BILLED],
            found=["restated after bill"],
        ),
    ),
)
