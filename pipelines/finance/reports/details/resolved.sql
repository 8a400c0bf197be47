-- Breaks that a person has resolved, and those that the rows no longer show; the newest first.
WITH last AS (
    SELECT decisions.break_id, max(decisions.decided_at) AS decided_at
    FROM reconciliation.decisions AS decisions
    WHERE decisions.kind = 'break_resolve'
    GROUP BY decisions.break_id
)
SELECT
    breaks.break_id, breaks.connection,
    coalesce(breaks.partner_name, breaks.partner, 'no partner') AS partner,
    breaks.partner AS partner_id, strftime(breaks.month, '%Y-%m') AS month, breaks.currency,
    breaks.cause, exact(breaks.difference) AS difference,
    strftime(coalesce(breaks.gone_at, last.decided_at), '%Y-%m-%d') AS resolved_on,
    if(breaks.gone_at IS NULL, breaks.resolved_by, NULL) AS resolved_by,
    if(breaks.gone_at IS NULL, breaks.reason, 'no longer found in the records') AS reason
FROM reconciliation.breaks AS breaks
LEFT JOIN last USING (break_id)
WHERE breaks.state = 'resolved' AND breaks.own_source IS NULL
ORDER BY coalesce(breaks.gone_at, last.decided_at) DESC, breaks.break_id
