-- Breaks that a person has resolved, that the mapping accepts, and that the rows no longer show; the
-- newest first. A break that is gone has no records. Its rows may still show the difference: then the
-- mapping accepts it. Otherwise books do not keep whether the rows or the mapping changed.
WITH last AS (
    SELECT decisions.break_id, max(decisions.decided_at) AS decided_at
    FROM reconciliation.decisions AS decisions
    WHERE decisions.kind = 'break_resolve'
    GROUP BY decisions.break_id
), signed AS (
    SELECT
        concat('; with this mapping, ', strftime(closes.month, '%b %Y'), ' was signed off on ',
            strftime(coalesce(closes.approved_at, closes.closed_at), '%d %b %Y'), ' by ',
            concat_ws(' and ', closes.preparer, closes.reviewer)) AS said
    FROM reconciliation.closes AS closes
    WHERE closes.state <> 'reopened' AND closes.has_mapping
    ORDER BY closes.month DESC, closes.number DESC
    LIMIT 1
), named AS (
    -- Books have the decision about their own mapping only.
    SELECT decisions.person, decisions.decided_at
    FROM reconciliation.decisions AS decisions
    WHERE decisions.kind = 'accept_mapping'
), fees AS (
    SELECT
        lines.connection, lines.partner, lines.month, lines.currency, lines.sign,
        string_agg(DISTINCT concat_ws(': ', lines.reason, known.why), ', ') AS reason,
        sum(lines.amount) AS amount
    FROM reconciliation.without_usage AS lines
    LEFT JOIN fee_reasons AS known ON lines.reason = 'accepted fees: ' || known.kind
    WHERE starts_with(lines.reason, 'accepted fees')
    GROUP BY ALL
), bills AS (
    SELECT bills.connection, bills.bill, any_value(bills.number) AS number
    FROM reconciliation.bill_totals AS bills
    GROUP BY bills.connection, bills.bill
), accepted AS (
    -- The bill is still there, and accepted fees of its month cover the difference.
    SELECT breaks.break_id, fees.reason
    FROM reconciliation.breaks AS breaks
    JOIN bills ON bills.connection = breaks.connection AND bills.bill = breaks.subject
    JOIN fees ON fees.connection = breaks.connection AND fees.currency = breaks.currency
        AND fees.partner IS NOT DISTINCT FROM breaks.partner
        AND fees.month IS NOT DISTINCT FROM breaks.month AND fees.sign = sign(breaks.difference)
        AND abs(fees.amount) >= abs(breaks.difference)
    WHERE breaks.gone_at IS NOT NULL AND breaks.rule = 'unreferenced'
    UNION ALL
    SELECT breaks.break_id, pairs.status
    FROM reconciliation.breaks AS breaks
    JOIN reconciliation.exceptions AS pairs
        ON pairs.connection = breaks.connection AND pairs.key = breaks.subject
        AND pairs.currency IS NOT DISTINCT FROM breaks.currency
        AND pairs.difference = breaks.difference
    WHERE breaks.gone_at IS NOT NULL AND breaks.own_source IS NULL
        AND pairs.status = 'within tolerance'
)
SELECT
    breaks.break_id, breaks.connection,
    coalesce(breaks.partner_name, breaks.partner, 'no partner') AS partner,
    breaks.partner AS partner_id, strftime(breaks.month, '%Y-%m') AS month, breaks.currency,
    breaks.cause, exact(breaks.difference) AS difference,
    strftime(coalesce(breaks.gone_at, last.decided_at), '%Y-%m-%d') AS resolved_on,
    CASE WHEN breaks.gone_at IS NULL THEN breaks.resolved_by
         WHEN accepted.break_id IS NOT NULL THEN named.person END AS resolved_by,
    CASE WHEN breaks.gone_at IS NULL THEN breaks.reason
         WHEN accepted.break_id IS NOT NULL AND named.person IS NOT NULL
            THEN concat('accepted by ', named.person, ' on ',
                strftime(named.decided_at, '%d %b %Y'), ' (mapping, ', accepted.reason, ')',
                signed.said)
         WHEN accepted.break_id IS NOT NULL
            THEN concat('accepted by the mapping (', accepted.reason, '); nobody is named: it was ',
                'edited by hand, or accepted with an earlier release', signed.said)
         ELSE 'no longer found; why is not kept: the records or the mapping changed' END AS reason,
    if(breaks.gone_at IS NULL, breaks.rows, NULL) AS rows,
    -- One that is gone has no records: it is a difference of this bill, or of bills of this usage.
    if(breaks.gone_at IS NULL, NULL, coalesce(bills.number, bills.bill)) AS bill,
    if(breaks.gone_at IS NULL OR bills.bill IS NOT NULL, NULL, breaks.subject) AS usage
FROM reconciliation.breaks AS breaks
LEFT JOIN last USING (break_id)
LEFT JOIN accepted USING (break_id)
LEFT JOIN signed ON true
LEFT JOIN bills ON bills.connection = breaks.connection AND bills.bill = breaks.subject
LEFT JOIN named ON true
WHERE breaks.state = 'resolved' AND breaks.own_source IS NULL
ORDER BY coalesce(breaks.gone_at, last.decided_at) DESC, breaks.break_id
