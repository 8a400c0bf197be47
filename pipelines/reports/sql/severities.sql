-- One without a month is in none of the recent ones.
SELECT
    breaks.severity, count(*) AS breaks, count(*) FILTER (recent.month IS NULL) AS in_other_months
FROM reconciliation.breaks AS breaks
LEFT JOIN (SELECT DISTINCT recent.month FROM recent) AS recent ON recent.month = breaks.month
WHERE breaks.state <> 'resolved' AND breaks.uncertain IS NULL
GROUP BY breaks.severity
ORDER BY list_position(['high', 'medium', 'low'], breaks.severity)
