-- The largest of each currency come first: amounts of two currencies cannot be compared. A break
-- whose counterpart is known comes later: both together may be nothing. What was found today comes
-- first.
WITH open AS (
    SELECT
        breaks.*, others.partner AS other_partner,
        list_position(['high', 'medium', 'low'], breaks.severity) AS level,
        row_number() OVER (
            PARTITION BY breaks.severity, breaks.currency
            ORDER BY others.partner IS NOT NULL, abs(breaks.difference) DESC NULLS LAST,
                breaks.break_id
        ) AS place
    FROM reconciliation.breaks AS breaks
    LEFT JOIN counterparts AS others USING (break_id)
    WHERE breaks.state <> 'resolved' AND breaks.uncertain IS NULL
)
SELECT
    open.break_id, open.rule, open.severity, open.connection, open.partner,
    open.partner_name AS name, open.month, open.currency, open.cause, open.difference, open.rows,
    open.age_days, open.owner, rules.remedy, open.other_partner
FROM open
LEFT JOIN reconciliation.rules AS rules USING (rule)
LEFT JOIN currencies ON currencies.currency IS NOT DISTINCT FROM open.currency
ORDER BY open.level, open.place, open.age_days > 0, currencies.place, open.break_id
LIMIT 10
