-- A month in which an amount is missing is not known to be balanced, nor one that is over whose usage
-- ends before it does: `usage_until`.
-- needs: ended_usage
WITH unknown AS (
    SELECT DISTINCT missing.month, missing.currency, true AS is_unknown
    FROM reconciliation.missing_amounts AS missing
)
SELECT
    summary.currency, summary.month,
    coalesce(sum(summary.used_amount), 0) AS used,
    coalesce(sum(summary.billed_amount), 0) + coalesce(sum(summary.credited_amount), 0) AS billed,
    sum(summary.difference) AS difference,
    coalesce(sum(summary.open_breaks), 0)::BIGINT AS open_breaks,
    bool_or(summary.verdict = 'not proven') AS is_doubtful, min(ended.day) AS usage_until,
    bool_and(summary.verdict = 'balanced' AND unknown.is_unknown IS NULL) AS is_balanced
FROM reconciliation.summary AS summary
LEFT JOIN unknown ON unknown.month IS NOT DISTINCT FROM summary.month
    AND unknown.currency IS NOT DISTINCT FROM summary.currency
LEFT JOIN ended_usage AS ended ON ended.connection = summary.connection
    AND last_day(summary.month) > ended.day AND last_day(summary.month) < ended.read_on
GROUP BY summary.currency, summary.month
ORDER BY summary.currency, summary.month NULLS FIRST
