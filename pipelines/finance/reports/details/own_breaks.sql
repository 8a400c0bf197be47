-- Breaks with own books that nobody has resolved. The first one comes first.
SELECT
    breaks.break_id, breaks.severity, sources.source, breaks.connection,
    coalesce(breaks.partner_name, breaks.partner, 'no partner') AS partner,
    breaks.partner AS partner_id, strftime(breaks.month, '%Y-%m') AS month, breaks.currency,
    breaks.cause, breaks.subject,
    exact(coalesce(breaks.used_amount, breaks.billed_amount)) AS service,
    exact(breaks.own_amount) AS own, exact(breaks.difference) AS difference,
    breaks.age_days AS age, breaks.owner,
    assigned.reason,
    if(breaks.uncertain IS NULL, NULL, 'uncertain') AS state,
    coalesce(breaks.uncertain, breaks.doubt) AS uncertain,
    breaks.rows, breaks.rule, rules.remedy
FROM reconciliation.breaks AS breaks
JOIN reconciliation.own_sources AS sources ON sources.source = breaks.own_source
JOIN break_order AS places USING (break_id)
LEFT JOIN reconciliation.assignments AS assigned USING (break_id)
LEFT JOIN reconciliation.rules AS rules USING (rule)
WHERE breaks.state <> 'resolved'
ORDER BY breaks.uncertain IS NOT NULL, places.place
