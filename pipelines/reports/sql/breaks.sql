-- The largest of each currency come first: amounts of two currencies cannot be compared. Of those,
-- a break whose other side is known comes later: both sides together may be nothing.
WITH open AS (
    SELECT
        breaks.*,
        list_position(['high', 'medium', 'low'], breaks.severity) AS level,
        row_number() OVER (
            PARTITION BY breaks.severity, breaks.currency
            ORDER BY abs(breaks.difference) DESC NULLS LAST, breaks.break_id
        ) AS place
    FROM reconciliation.breaks AS breaks
    WHERE breaks.state <> 'resolved' AND breaks.uncertain IS NULL
)
SELECT
    open.break_id, open.rule, open.severity, open.connection, open.partner,
    open.partner_name AS name, open.month, open.currency, open.cause, open.difference, open.rows,
    open.age_days, open.owner, rules.remedy, others.partner AS other_partner
FROM open
LEFT JOIN reconciliation.rules AS rules ON rules.rule = open.rule
LEFT JOIN counterparts AS others ON others.break_id = open.break_id
ORDER BY
    open.level, open.place, others.partner IS NOT NULL, open.age_days DESC, open.currency,
    open.break_id
LIMIT 10
