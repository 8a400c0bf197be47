-- Partners whose month is out of balance because its records are with an unknown partner.
SELECT
    breaks.break_id,
    concat(min(months.partner), nullif(printf(' and %d more', count(DISTINCT months.partner) - 1),
        ' and 0 more')) AS partner
FROM reconciliation.breaks AS breaks
JOIN finance.partner_months AS months
    ON months.connection = breaks.connection AND months.month = breaks.month
    AND months.currency IS NOT DISTINCT FROM breaks.currency
    AND months.cause = concat('unknown partner ', breaks.partner)
WHERE breaks.rule = 'unknown_partner'
GROUP BY breaks.break_id
