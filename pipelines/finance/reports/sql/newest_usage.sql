-- The day of the newest usage up to the reading of usage; of monthly usage, the first of a month.
-- needs: proofs
WITH read AS (
    SELECT (max(proofs.as_of) AT TIME ZONE any_value(basis.time_zone))::DATE AS day
    FROM proofs
    CROSS JOIN reconciliation.basis AS basis
    WHERE proofs.stream = 'usage'
)
SELECT
    max(used.day) AS day, bool_or(day(used.day) > 1) AS has_days
FROM reconciliation.usage_days AS used
CROSS JOIN read
WHERE used.day <= coalesce(read.day, DATE '9999-12-31')
