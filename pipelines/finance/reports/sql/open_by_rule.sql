-- Open breaks of each rule. `large` counts those whose difference is at least `large_break`, if set.
-- needs: open_breaks
SELECT
    breaks.rule, breaks.currency, count(*) AS breaks, sum(breaks.difference) AS difference,
    count(*) FILTER (abs(breaks.difference) >= getvariable('large_break')) AS large
FROM open_breaks AS breaks
GROUP BY breaks.rule, breaks.currency
ORDER BY ALL
