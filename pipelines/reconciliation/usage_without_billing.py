"""Usage of a month whose bills are due, on no bill."""

from pipelines.reconciliation.base import LINE, USED, Example, Rule, Severity

SQL = """
WITH issued AS (
    SELECT connection, partner, month, max(issued_at) AS last FROM bills GROUP BY ALL
), unbilled AS (
    SELECT u.*, CASE WHEN u.recorded_at > i.last THEN 'late' ELSE 'missing' END AS cause
    FROM odd_used u JOIN matched m USING (connection, key)
    LEFT JOIN issued i ON (i.connection, i.partner, i.month) = (u.connection, u.partner, u.month)
    CROSS JOIN terms
    WHERE m.status = 'usage without billing'
      AND (u.month + INTERVAL 1 MONTH)::DATE + grace_days <= as_of::DATE
      AND EXISTS (FROM payers p WHERE (p.connection, p.partner) = (u.connection, u.partner))
)
SELECT connection, concat_ws('|', partner, month, currency, cause) AS subject, partner, month,
       currency, cause, 'usage' AS side, id, amount, quantity, page, row
FROM unbilled
"""

BILLED = {**LINE, "issued_at": "2026-09-30 22:00:00Z"}

RULE = Rule(
    name="usage_without_billing",
    question="Which usage of months whose bills are due is on no bill?",
    sql=SQL,
    means="What was used and not billed: revenue that nobody has asked for. `late` was recorded "
    "after the partner's last bill of the month was issued, `missing` before.",
    remedy="Late usage belongs on the next bill; for missing usage ask why the bill lacks it.",
    severity=Severity.HIGH,
    needs=("key", "usage.id", "usage.partner", "usage.period", "partners.id"),
    absent=("billing",),
    tolerance="usage of months that are not over for grace_days",
    examples=(
        Example("billed", [USED], [BILLED]),
        Example("never billed", [USED], found=["missing"]),
        Example(
            "recorded after the bill was issued",
            [USED, {**USED, "id": "u2", "recorded_at": "2026-10-03 09:00:00Z"}],
            [BILLED],
            found=["late"],
        ),
        Example("the month is not over", [{**USED, "month": "2026-11-01"}]),
    ),
)
