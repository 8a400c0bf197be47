-- `all_difference` and `unknown_partners` are sums of the currency, over all ages.
SELECT
    ageing.currency, ageing.days,
    sum(ageing.breaks)::BIGINT AS breaks, sum(ageing.difference) AS difference,
    sum(sum(ageing.difference)) OVER one AS all_difference,
    coalesce(sum(sum(ageing.difference) FILTER (ageing.rule = 'unknown_partner')) OVER one, 0)
        AS unknown_partners
FROM reconciliation.ageing AS ageing
LEFT JOIN currencies ON currencies.currency IS NOT DISTINCT FROM ageing.currency
GROUP BY ageing.currency, ageing.days, currencies.place
WINDOW one AS (PARTITION BY ageing.currency)
ORDER BY currencies.place
