-- Breaks that may only be rows which were not read: they are in no other query.
SELECT breaks.rule, breaks.connection, breaks.uncertain AS reason, count(*) AS breaks
FROM reconciliation.breaks AS breaks
WHERE breaks.state <> 'resolved' AND breaks.uncertain IS NOT NULL
GROUP BY breaks.rule, breaks.connection, breaks.uncertain
ORDER BY breaks DESC, breaks.rule, breaks.connection
