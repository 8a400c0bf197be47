-- Differences that are no breaks, by currency. NULL: there is none in a partner's month; what cancels
-- is 0. Variables `partner` (identifier or name) and `month` choose; unset or empty: all.
SELECT
    months.currency, coalesce(sum(months.tolerated), 0) AS tolerated,
    coalesce(sum(months.rounding), 0) AS rounding, count(*) AS partner_months
FROM reconciliation.summary AS months
WHERE coalesce(months.tolerated, months.rounding) IS NOT NULL
    AND coalesce(getvariable('partner'), '') IN ('', months.partner, months.partner_name)
    AND coalesce(getvariable('month'), '') IN ('', strftime(months.month, '%Y-%m'))
GROUP BY months.currency
ORDER BY months.currency
