"""Usage and bills that a complete reading had no more."""

from pipelines.reconciliation.base import Example, Rule, Severity

SQL = """
WITH gone AS (
    SELECT connection, 'usage' AS side, id, partner, month, currency, amount, quantity, page, row
    FROM used_versions v
    WHERE missing_since IS NOT NULL OR (
        why = 'missing' AND NOT EXISTS (
            FROM used_versions n
            WHERE (n.connection, n.id) = (v.connection, v.id) AND n.valid_from >= v.valid_to
        )
    )
    UNION ALL
    SELECT connection, 'billing', bill, partner, month, currency, amount, NULL, page, row
    FROM bill_versions v
    WHERE missing_since IS NOT NULL OR (
        why = 'missing' AND NOT EXISTS (
            FROM bill_versions n
            WHERE (n.connection, n.bill) = (v.connection, v.bill) AND n.valid_from >= v.valid_to
        )
    )
)
SELECT connection, side || '|' || id AS subject, partner, month, currency,
       side || ' that is no longer there' AS cause, side, id, amount, quantity, page, row
FROM gone
"""

VERSION = {"id": "u1", "partner": "P", "month": "2026-09-01", "currency": "EUR", "amount": "5.00"}
BEGAN, ENDED = "2026-10-01 01:00:00Z", "2026-10-02 01:00:00Z"

RULE = Rule(
    name="disappeared",
    question="Which usage and which bills did a complete reading have no more?",
    sql=SQL,
    means="The service had the record and has it no more. Only a reading that is proven complete "
    "can say so; what was not read is never called gone.",
    remedy="Ask why it was taken back; if it is right, resolve the break with that reason.",
    severity=Severity.MEDIUM,
    needs=("usage.id",),
    examples=(
        Example("there", versions=[{**VERSION, "valid_from": BEGAN}]),
        Example(
            "missing since a reading",
            versions=[{**VERSION, "valid_from": BEGAN, "missing_since": ENDED}],
            found=["usage that is no longer there"],
        ),
        Example(
            "gone for good",
            versions=[{**VERSION, "valid_from": BEGAN, "valid_to": ENDED, "why": "missing"}],
            found=["usage that is no longer there"],
        ),
        Example(
            "gone, and back",
            versions=[
                {**VERSION, "valid_from": BEGAN, "valid_to": ENDED, "why": "missing"},
                {**VERSION, "valid_from": "2026-10-04 01:00:00Z"},
            ],
        ),
    ),
)
