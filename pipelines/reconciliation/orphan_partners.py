"""Usage and bills of partners that the list of partners does not have."""

from pipelines.reconciliation.base import LINE, USED, Example, Rule, Severity

SQL = """
WITH strangers AS (
    SELECT connection, partner, month, currency, 'usage' AS side, id, amount, quantity, page, row
    FROM used
    UNION ALL
    SELECT connection, partner, month, currency, 'billing', bill, amount, NULL, page, row FROM bills
)
SELECT connection, concat_ws('|', side, partner, month, currency) AS subject, partner, month,
       currency, side || ' of an unknown partner' AS cause, side, id, amount, quantity, page, row
FROM strangers s
WHERE partner IS NOT NULL AND EXISTS (FROM payers)
  AND NOT EXISTS (FROM payers p WHERE (p.connection, p.partner) = (s.connection, s.partner))
"""


RULE = Rule(
    name="orphan_partners",
    question="Which usage and which bills are of a partner that is not in the list?",
    sql=SQL,
    means="Nobody in the list of partners answers for it: a partner that was removed, or an "
    "identifier that is wrong.",
    remedy="Look the identifier up with the service; what it is about is in nobody's totals.",
    severity=Severity.HIGH,
    needs=("partners.id", "usage.partner", "billing.partner"),
    absent=("partners",),
    examples=(
        Example("known", [USED], [LINE]),
        Example("usage", [{**USED, "partner": "X"}], found=["usage of an unknown partner"]),
        Example("bill", [], [{**LINE, "partner": "X"}], found=["billing of an unknown partner"]),
    ),
)
