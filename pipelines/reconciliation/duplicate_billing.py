"""Usage that is billed more than once, and bills that look like others."""

from pipelines.reconciliation.base import LINE, USED, Example, Rule, Severity

SQL = """
WITH ranked AS (
    SELECT b.*, m.used_rows, row_number() OVER (
        PARTITION BY b.connection, b.key ORDER BY b.issued_at, bills.number, b.bill
    ) AS place
    FROM odd_billed b JOIN matched m USING (connection, key)
    JOIN bills ON (bills.connection, bills.bill) = (b.connection, b.bill)
    WHERE m.status = 'billed twice'
), again AS (
    SELECT * FROM ranked WHERE place > used_rows
), whole AS (
    SELECT connection, bill
    FROM (
        SELECT connection, bill, count(*) AS lines FROM billed
        WHERE bill IN (SELECT bill FROM again) GROUP BY ALL
    )
    JOIN (SELECT connection, bill, count(*) AS lines FROM again GROUP BY ALL)
    USING (connection, bill, lines)
), alike AS (
    SELECT *, CASE WHEN amount IS NULL OR month IS NULL THEN 'equal but for the key'
                   ELSE 'same partner, month and amount' END AS cause,
           row_number() OVER (
               PARTITION BY connection, partner, month, currency, amount,
                            CASE WHEN amount IS NULL OR month IS NULL THEN content END
               ORDER BY issued_at, number, bill
           ) AS place
    FROM bills WHERE NOT EXISTS (FROM billed WHERE reference IS NOT NULL)
)
SELECT a.connection, a.bill AS subject, a.partner, a.month, a.currency,
       CASE WHEN w.bill IS NULL THEN 'lines billed twice' ELSE 'second bill' END AS cause,
       'billing' AS side, a.id, a.amount, a.quantity, a.page, a.row
FROM again a LEFT JOIN whole w USING (connection, bill)
UNION ALL
SELECT connection, bill, partner, month, currency, cause, 'billing', bill, amount, NULL, page, row
FROM alike WHERE place > 1
"""

OTHER = {**LINE, "id": "b2#0", "bill": "b2"}

RULE = Rule(
    name="duplicate_billing",
    question="Which usage is billed more than once?",
    sql=SQL,
    means="The partner is asked twice for the same. The bill that was issued first counts; where "
    "no line refers to usage, bills of one partner, month and amount are only alike; without "
    "those roles, bills that are equal in all but their key.",
    remedy="Dispute the second bill. Records that paging showed twice are merged before and never "
    "come here: `meta.freshness` counts them as duplicates.",
    severity=Severity.HIGH,
    needs=("billing.id",),
    examples=(
        Example("billed once", [USED], [LINE]),
        Example("billed again", [USED], [LINE, OTHER], found=["second bill"]),
        Example(
            "one line again",
            [USED, {**USED, "id": "u2"}],
            [LINE, OTHER, {**OTHER, "id": "b2#1", "reference": "u2"}],
            found=["lines billed twice"],
        ),
    ),
)
