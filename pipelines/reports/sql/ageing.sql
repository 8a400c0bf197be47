-- `all_difference` is the sum of the currency, over all ages; `other` is what of its difference is in
-- no open break.
SELECT
    ageing.currency, ageing.days,
    sum(ageing.breaks)::BIGINT AS breaks, sum(ageing.difference) AS difference,
    sum(sum(ageing.difference)) OVER (PARTITION BY ageing.currency) AS all_difference,
    currencies.difference - all_difference AS other, currencies.difference AS whole
FROM reconciliation.ageing AS ageing
LEFT JOIN currencies ON currencies.currency IS NOT DISTINCT FROM ageing.currency
GROUP BY ageing.currency, ageing.days, currencies.place, currencies.difference
ORDER BY currencies.place
