-- Open breaks of used and billed, of each currency by the days since the end of their month.
-- needs: currencies
SELECT
    ageing.currency, ageing.days, sum(ageing.breaks)::BIGINT AS breaks,
    sum(ageing.difference) AS difference
FROM reconciliation.ageing AS ageing
JOIN currencies ON currencies.currency IS NOT DISTINCT FROM ageing.currency
WHERE ageing.own_source IS NULL
GROUP BY ageing.currency, ageing.days, currencies.place
ORDER BY currencies.place
