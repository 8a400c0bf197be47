-- Those with the most open breaks come first, then those with the most bills: amounts of two
-- currencies cannot be compared. `place` is their order in all parts of the report. `not_billed` and
-- `not_used` are the sums of the partners' months with a negative and with a positive difference.
SELECT
    summary.currency,
    coalesce(sum(summary.used_amount), 0) AS used,
    coalesce(sum(summary.billed_amount), 0) AS billed,
    coalesce(sum(summary.credited_amount), 0) AS credited,
    billed + credited AS billed_net,
    sum(summary.difference) AS difference,
    coalesce(sum(summary.difference) FILTER (summary.difference < 0), 0) AS not_billed,
    coalesce(sum(summary.difference) FILTER (summary.difference > 0), 0) AS not_used,
    coalesce(sum(summary.difference) FILTER (summary.verdict = 'tentative'), 0) AS not_due,
    sum(summary.open_breaks)::BIGINT AS open_breaks,
    row_number() OVER (
        ORDER BY sum(summary.open_breaks) DESC, sum(summary.bills) DESC, summary.currency
    ) AS place
FROM reconciliation.summary AS summary
GROUP BY summary.currency
ORDER BY place
