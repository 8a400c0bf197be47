-- Open breaks that are not shown.
SELECT
    open.currency, count(*) AS breaks, count(*) FILTER (open.severity = 'high') AS high,
    sum(open.difference) AS difference
FROM reconciliation.breaks AS open
JOIN currencies ON currencies.currency IS NOT DISTINCT FROM open.currency
ANTI JOIN breaks USING (break_id)
WHERE open.state <> 'resolved' AND open.uncertain IS NULL
GROUP BY open.currency, currencies.place
ORDER BY currencies.place
