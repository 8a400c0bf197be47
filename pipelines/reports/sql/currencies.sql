SELECT
    summary.currency,
    sum(summary.used_rows + summary.bills)::BIGINT AS rows,
    coalesce(sum(summary.used_amount), 0) AS used,
    coalesce(sum(summary.billed_amount), 0) AS billed,
    coalesce(sum(summary.credited_amount), 0) AS credited,
    sum(summary.difference) AS difference,
    coalesce(sum(summary.difference) FILTER (summary.verdict = 'tentative'), 0) AS not_due,
    sum(summary.open_breaks)::BIGINT AS open_breaks
FROM reconciliation.summary AS summary
GROUP BY summary.currency
ORDER BY rows DESC, summary.currency
