"""Usage and bills that a complete reading had no more."""

from pipelines.reconciliation.base import USED, Example, Rule, Severity

SQL = """
WITH lost AS (
    SELECT connection, 'usage' AS side, id, partner, month, currency, amount, quantity, page, row,
           missing_since, valid_to
    FROM used_versions WHERE missing_since IS NOT NULL OR why = 'missing'
    UNION ALL
    SELECT connection, 'billing', bill, partner, month, currency, amount, NULL, page, row,
           missing_since, valid_to
    FROM bill_versions WHERE missing_since IS NOT NULL OR why = 'missing'
), back AS (
    SELECT connection, 'usage' AS side, id, valid_from FROM used_versions
    SEMI JOIN lost USING (connection, id)
    UNION ALL
    SELECT connection, 'billing', bill, valid_from FROM bill_versions
    WHERE bill IN (SELECT id FROM lost)
)
SELECT connection, side || '|' || id AS subject, partner, month, currency,
       side || ' that is no longer there' AS cause, side, id, amount, quantity, page, row
FROM lost l
WHERE id IS NOT NULL AND (missing_since IS NOT NULL OR NOT EXISTS (
    FROM back b WHERE (b.connection, b.side, b.id) = (l.connection, l.side, l.id)
        AND b.valid_from >= l.valid_to
))
"""

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
        Example("there", versions=[{**USED, "valid_from": BEGAN}]),
        Example(
            "missing since a reading",
            versions=[{**USED, "valid_from": BEGAN, "missing_since": ENDED}],
            found=["usage that is no longer there"],
        ),
        Example(
            "gone for good",
            versions=[{**USED, "valid_from": BEGAN, "valid_to": ENDED, "why": "missing"}],
            found=["usage that is no longer there"],
        ),
        Example(
            "gone, and back",
            versions=[
                {**USED, "valid_from": BEGAN, "valid_to": ENDED, "why": "missing"},
                {**USED, "valid_from": "2026-10-04 01:00:00Z"},
            ],
        ),
    ),
)
