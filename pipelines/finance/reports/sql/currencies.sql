-- Those with the most open breaks come first, then those with the most bills: amounts of two
-- currencies cannot be compared. `place` is their order in all parts of the report. `open` is
-- the sum of the open breaks. Those below zero are `unbilled`, as a positive amount, those above zero
-- `overbilled`; `other` is the rest of the difference.
-- needs: breaks
SELECT
    summary.currency,
    coalesce(sum(summary.used_amount), 0) AS used,
    coalesce(sum(summary.billed_amount), 0) AS billed,
    coalesce(sum(summary.credited_amount), 0) AS credited,
    billed + credited AS billed_net,
    sum(summary.difference) AS difference,
    coalesce(any_value(breaks.difference), 0) AS open,
    coalesce(any_value(breaks.unbilled), 0) AS unbilled,
    coalesce(any_value(breaks.overbilled), 0) AS overbilled,
    sum(summary.difference) - open AS other,
    sum(summary.open_breaks)::BIGINT AS open_breaks,
    row_number() OVER (
        ORDER BY sum(summary.open_breaks) DESC, sum(summary.bills) DESC, summary.currency
    ) AS place
FROM reconciliation.summary AS summary
LEFT JOIN (
    SELECT
        breaks.currency, sum(breaks.difference) AS difference,
        -sum(breaks.difference) FILTER (breaks.difference < 0) AS unbilled,
        sum(breaks.difference) FILTER (breaks.difference > 0) AS overbilled
    FROM breaks
    WHERE breaks.outcome = 'open' AND breaks.own_source IS NULL
    GROUP BY breaks.currency
) AS breaks ON breaks.currency IS NOT DISTINCT FROM summary.currency
GROUP BY summary.currency
ORDER BY place
