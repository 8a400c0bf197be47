SELECT
    summary.currency, summary.month,
    coalesce(sum(summary.used_amount), 0) AS used,
    coalesce(sum(summary.billed_amount), 0) + coalesce(sum(summary.credited_amount), 0) AS billed,
    sum(summary.difference) AS difference,
    coalesce(sum(summary.open_breaks), 0)::BIGINT AS open_breaks,
    bool_and(summary.verdict = 'balanced') AS is_balanced
FROM reconciliation.summary AS summary
GROUP BY summary.currency, summary.month
ORDER BY summary.currency, summary.month NULLS FIRST
