-- A month in which an amount is missing is not known to be balanced.
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
    bool_or(summary.verdict = 'not proven') AS is_doubtful,
    bool_and(summary.verdict = 'balanced' AND unknown.is_unknown IS NULL) AS is_balanced
FROM reconciliation.summary AS summary
LEFT JOIN unknown ON unknown.month IS NOT DISTINCT FROM summary.month
    AND unknown.currency IS NOT DISTINCT FROM summary.currency
GROUP BY summary.currency, summary.month
ORDER BY summary.currency, summary.month NULLS FIRST
