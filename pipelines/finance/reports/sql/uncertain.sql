-- Breaks that may only be rows which were not read: they are in no other query.
-- needs: breaks
SELECT breaks.rule, breaks.connection, breaks.uncertain AS reason, count(*) AS breaks
FROM breaks
WHERE breaks.outcome = 'now uncertain'
GROUP BY breaks.rule, breaks.connection, breaks.uncertain
ORDER BY count(*) DESC, breaks.rule, breaks.connection
