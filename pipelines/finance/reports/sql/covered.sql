-- Differences that are no breaks, by currency. NULL: there is none in a partner's month.
SELECT
    months.currency, coalesce(sum(months.tolerated), 0) AS tolerated,
    coalesce(sum(months.rounding), 0) AS rounding, count(*) AS partner_months
FROM reconciliation.summary AS months
WHERE coalesce(months.tolerated, months.rounding) IS NOT NULL
GROUP BY months.currency
ORDER BY months.currency
