-- Every break; `outcome` says what became of it. The largest of each currency come first. Those with
-- own books (`own_source`) are no part of the difference of used and billed. `ageing` groups ages as
-- `reconciliation.ageing` does.
-- needs: counterparts
SELECT
    breaks.break_id, breaks.rule, breaks.severity, breaks.connection, breaks.partner,
    breaks.partner_name AS name, breaks.month, breaks.currency, breaks.cause, breaks.difference,
    breaks.rows, breaks.own_source, breaks.age_days, breaks.due_on, breaks.first_seen, breaks.owner,
    CASE WHEN breaks.age_days IS NULL THEN 'no month'
         WHEN breaks.age_days <= 7 THEN '0 to 7 days' WHEN breaks.age_days <= 30 THEN '8 to 30 days'
         WHEN breaks.age_days <= 60 THEN '31 to 60 days'
         WHEN breaks.age_days <= 90 THEN '61 to 90 days' ELSE 'over 90 days' END AS ageing,
    breaks.uncertain, others.partner AS other_partner,
    CASE WHEN breaks.gone_at IS NOT NULL THEN 'no longer found'
         WHEN breaks.state = 'resolved' THEN 'resolved by a person'
         WHEN breaks.uncertain IS NOT NULL THEN 'now uncertain' ELSE 'open' END AS outcome
FROM reconciliation.breaks AS breaks
LEFT JOIN counterparts AS others USING (break_id)
ORDER BY breaks.state = 'resolved', row_number() OVER (PARTITION BY breaks.currency
    ORDER BY abs(breaks.difference) DESC NULLS LAST, breaks.break_id), breaks.currency
