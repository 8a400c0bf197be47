-- Breaks of used and billed that nobody has resolved, also uncertain ones, with what to do. The first one comes first.
SELECT
    breaks.break_id, breaks.severity, breaks.connection,
    coalesce(breaks.partner_name, breaks.partner, 'no partner') AS partner,
    breaks.partner AS partner_id, strftime(breaks.month, '%Y-%m') AS month, breaks.currency,
    breaks.cause, named.other_partner AS named, exact(breaks.used_amount) AS used,
    exact(breaks.billed_amount) AS billed, exact(breaks.difference) AS difference,
    breaks.age_days AS age, named.ageing,
    strftime(breaks.due_on, '%Y-%m-%d') AS due,
    strftime(breaks.first_seen, '%Y-%m-%d') AS first_seen, breaks.owner,
    assigned.reason,
    if(breaks.uncertain IS NULL, NULL, 'uncertain') AS state,
    claims.reason AS follows, exact(withheld.amount) AS unpaid,
    if(claims.reason = 'overbilled' AND getvariable('knows_payments'),
        nullif(exact(breaks.difference - coalesce(withheld.amount, 0)), '0'), NULL) AS paid,
    coalesce(breaks.uncertain, breaks.doubt) AS uncertain, breaks.rows, breaks.rule, rules.remedy
FROM reconciliation.breaks AS breaks
LEFT JOIN breaks AS named USING (break_id)
LEFT JOIN reconciliation.assignments AS assigned USING (break_id)
LEFT JOIN claim_breaks AS claims USING (break_id)
LEFT JOIN withheld_breaks AS withheld USING (break_id)
JOIN break_order AS places USING (break_id)
LEFT JOIN reconciliation.rules AS rules ON rules.rule = breaks.rule
WHERE breaks.state <> 'resolved' AND breaks.own_source IS NULL
ORDER BY breaks.uncertain IS NOT NULL, places.place
