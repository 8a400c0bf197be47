-- The largest of each currency come first: amounts of two currencies cannot be compared.
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
    open.age_days, open.owner, rules.remedy,
    (
        SELECT min(months.partner)
        FROM finance.partner_months AS months
        WHERE open.rule = 'unknown_partner' AND months.connection = open.connection
            AND months.month = open.month AND months.cause = concat('unknown partner ', open.partner)
    ) AS other_partner
FROM open
LEFT JOIN reconciliation.rules AS rules ON rules.rule = open.rule
ORDER BY open.level, open.place, open.age_days DESC, open.currency, open.break_id
LIMIT 12
