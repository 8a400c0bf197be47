SELECT breaks.severity, count(*) AS breaks
FROM reconciliation.breaks AS breaks
WHERE breaks.state <> 'resolved' AND breaks.uncertain IS NULL
GROUP BY breaks.severity
ORDER BY list_position(['high', 'medium', 'low'], breaks.severity)
