-- Open breaks of used and billed, of each currency by the days since the end of their month. What is
-- overbilled and what is unbilled may cancel: both are apart, too.
-- needs: breaks currencies
SELECT
    breaks.currency, breaks.ageing AS days, count(*) AS breaks,
    sum(breaks.difference) AS difference,
    sum(breaks.difference) FILTER (breaks.difference > 0) AS overbilled,
    sum(breaks.difference) FILTER (breaks.difference < 0) AS unbilled
FROM breaks
JOIN currencies ON currencies.currency IS NOT DISTINCT FROM breaks.currency
WHERE breaks.outcome = 'open' AND breaks.own_source IS NULL
GROUP BY breaks.currency, breaks.ageing, currencies.place
ORDER BY currencies.place
