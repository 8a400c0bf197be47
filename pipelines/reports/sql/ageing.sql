-- `all_difference` is the sum of the currency, over all ages; `other` is what of its difference is in
-- no open break. `days` is NULL where no break is open.
SELECT
    currencies.currency, ageing.days,
    coalesce(sum(ageing.breaks), 0)::BIGINT AS breaks, sum(ageing.difference) AS difference,
    coalesce(sum(sum(ageing.difference)) OVER (PARTITION BY currencies.currency), 0)
        AS all_difference,
    currencies.difference - all_difference AS other, currencies.difference AS whole,
    ageing.days IS NOT NULL OR other <> 0 AS is_shown
FROM currencies
LEFT JOIN reconciliation.ageing AS ageing
    ON ageing.currency IS NOT DISTINCT FROM currencies.currency
GROUP BY currencies.currency, ageing.days, currencies.place, currencies.difference
ORDER BY currencies.place
