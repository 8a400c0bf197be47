SELECT
    coalesce(ageing.currency, '') AS currency, ageing.days,
    sum(ageing.breaks)::BIGINT AS breaks, sum(ageing.difference) AS difference
FROM reconciliation.ageing AS ageing
GROUP BY ageing.currency, ageing.days
ORDER BY ageing.currency
