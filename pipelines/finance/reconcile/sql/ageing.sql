-- kind: VIEW
-- question: How old are unresolved breaks?
-- needs: breaks
-- remedy: Assign or resolve the oldest breaks first.
SELECT
    breaks.rule, breaks.own_source, breaks.severity, breaks.currency,
    CASE WHEN breaks.age_days IS NULL THEN 'no month'
         WHEN breaks.age_days <= 7 THEN '0-7' WHEN breaks.age_days <= 30 THEN '8-30'
         WHEN breaks.age_days <= 60 THEN '31-60' WHEN breaks.age_days <= 90 THEN '61-90'
         ELSE '>90' END AS days,
    count(*) AS breaks, sum(breaks.difference) AS difference
FROM reconciliation.breaks AS breaks
WHERE breaks.state <> 'resolved' AND breaks.uncertain IS NULL
GROUP BY ALL
ORDER BY ALL
