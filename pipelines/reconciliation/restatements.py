"""Usage and bills that changed since they were first read: old and new value."""

from pipelines.reconciliation.base import Rule

SQL = """
WITH versions AS (
    SELECT connection, 'usage' AS side, id, partner, month, currency, amount, quantity, valid_from,
           valid_to, why FROM used_versions
    UNION ALL
    SELECT connection, 'billing', bill, partner, month, currency, amount, NULL, valid_from,
           valid_to, why FROM bill_versions
), ended AS (
    SELECT *, valid_to AS changed_at FROM versions WHERE valid_to IS NOT NULL AND why <> 'missing'
)
SELECT e.connection, e.side, e.id, n.partner, n.month, n.currency,
       e.amount AS amount_before, n.amount AS amount_after, n.amount - e.amount AS difference,
       e.quantity AS quantity_before, n.quantity AS quantity_after, e.why, e.changed_at,
       (n.month + INTERVAL 1 MONTH)::DATE <= e.changed_at::DATE AS after_month,
       EXISTS (
           FROM reconciliation.corrections c
           WHERE (c.connection, c.side) = (e.connection, e.side) AND c.seen_at >= e.changed_at
               AND (c.id = e.id OR c.side = 'billing' AND starts_with(c.id, e.id || '#'))
       ) AS after_close
FROM ended e JOIN (
    SELECT * FROM versions SEMI JOIN ended USING (connection, side, id)
) n ON (n.connection, n.side, n.id, n.valid_from) = (e.connection, e.side, e.id, e.valid_to)
WHERE e.amount IS DISTINCT FROM n.amount OR e.quantity IS DISTINCT FROM n.quantity
ORDER BY e.changed_at DESC, e.connection, e.side, e.id
"""

RULE = Rule(
    name="restatements",
    question="Which usage and which bills say another amount or quantity than before?",
    sql=SQL,
    means="The service changed what it had said. In a month that is over, sums that were reported "
    "change with it; where it was closed, `corrections` has the difference.",
    remedy="Nothing where both sides changed alike; else see the breaks of the partner and month.",
    needs=("usage.id",),
    columns={
        "amount_before": "the amount until then",
        "amount_after": "the amount from then on",
        "difference": "new less old",
        "quantity_before": "the quantity until then",
        "quantity_after": "the quantity from then on",
        "why": "changed, or restated: a number is another one",
        "changed_at": "the end of the reading that showed it first",
        "after_close": "whether the month was signed off by then: `corrections` has it",
        "after_month": "whether the month of the record was over by then",
    },
)
