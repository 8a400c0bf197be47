"""The same usage with another quantity on its bill."""

from pipelines.reconciliation.base import Example, Rule, Severity

SQL = """
WITH wrong AS (
    SELECT m.connection, m.key, m.partner, m.month, m.currency,
           CASE WHEN max(u.updated_at) > max(b.issued_at) THEN 'restated after bill'
                ELSE 'quantity' END AS cause
    FROM matched m JOIN odd_used u USING (connection, key) JOIN odd_billed b USING (connection, key)
    WHERE m.status = 'quantity' GROUP BY ALL
)
SELECT w.connection, w.key AS subject, w.partner, w.month, w.currency, w.cause, 'usage' AS side,
       u.id, u.amount, u.quantity, u.page, u.row
FROM wrong w JOIN odd_used u USING (connection, key)
UNION ALL
SELECT w.connection, w.key, w.partner, w.month, w.currency, w.cause, 'billing', b.id, b.amount,
       b.quantity, b.page, b.row
FROM wrong w JOIN odd_billed b USING (connection, key)
"""

USED = {"id": "u1", "partner": "P", "month": "2026-09-01", "currency": "EUR", "quantity": "10"}
LINE = {**USED, "id": "b1#0", "bill": "b1", "reference": "u1", "issued_at": "2026-09-30 22:00:00Z"}

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
        Example("equal", [USED], [LINE]),
        Example("more", [USED], [{**LINE, "quantity": "11"}], found=["quantity"]),
        Example(
            "restated",
            [{**USED, "quantity": "12", "updated_at": "2026-10-03 23:45:00Z"}],
            [LINE],
            found=["restated after bill"],
        ),
    ),
)
