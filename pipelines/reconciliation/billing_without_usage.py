"""Billed lines whose usage nobody recorded."""

from pipelines.reconciliation.base import LINE, USED, Example, Rule, Severity

SQL = """
SELECT b.connection, b.bill AS subject, b.partner, b.month, b.currency,
       CASE WHEN count(*) OVER (PARTITION BY b.connection, b.bill) > 1 THEN 'no usage of the lines'
            ELSE 'no usage of the line' END AS cause,
       'billing' AS side, b.id, b.amount, b.quantity, b.page, b.row
FROM odd_billed b JOIN matched m USING (connection, key)
WHERE m.status = 'billing without usage'
  AND EXISTS (FROM payers p WHERE (p.connection, p.partner) = (b.connection, b.partner))
"""


RULE = Rule(
    name="billing_without_usage",
    question="Which billed lines refer to usage that is not there?",
    sql=SQL,
    means="The partner is asked for something that no usage record shows.",
    remedy="Ask which usage the bill is of before it is paid; lines without a reference (flat "
    "fees) are not asked.",
    severity=Severity.HIGH,
    needs=("key", "usage.id", "billing.id", "billing.partner", "partners.id"),
    absent=("usage",),
    examples=(
        Example("used", [USED], [LINE]),
        Example("never used", [], [LINE], found=["no usage of the line"]),
        Example("a flat fee has no usage", [], [{**LINE, "reference": None}]),
    ),
)
