-- `all_difference` is the sum of the currency, over all ages.
SELECT
    ageing.currency, ageing.days,
    sum(ageing.breaks)::BIGINT AS breaks, sum(ageing.difference) AS difference,
    sum(sum(ageing.difference)) OVER (PARTITION BY ageing.currency) AS all_difference
FROM reconciliation.ageing AS ageing
LEFT JOIN currencies ON currencies.currency IS NOT DISTINCT FROM ageing.currency
GROUP BY ageing.currency, ageing.days, currencies.place
ORDER BY currencies.place
