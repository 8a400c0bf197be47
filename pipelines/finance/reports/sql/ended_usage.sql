-- Connections whose usage ends more than a week before it was read: later usage may be missing. Not of
-- monthly usage, whose days are all the first of a month.
-- needs: proofs
WITH read AS (
    SELECT proofs.connection, (proofs.as_of AT TIME ZONE basis.time_zone)::DATE AS day
    FROM proofs
    CROSS JOIN reconciliation.basis AS basis
    WHERE proofs.stream = 'usage'
)
SELECT
    used.connection, max(used.day) AS day, any_value(read.day) AS read_on,
    date_diff('day', max(used.day), any_value(read.day)) AS days_before
FROM reconciliation.usage_days AS used
JOIN read ON read.connection = used.connection AND used.day <= read.day
GROUP BY used.connection
HAVING bool_or(day(used.day) > 1) AND days_before > 7
ORDER BY used.connection
