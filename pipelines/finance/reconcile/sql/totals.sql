-- question: What was used and billed, by partner, month and all that identifies what it is for?
-- needs: dated_totals
-- remedy: Map plan, metric, unit, region and organization, where the records have them.
-- All rows of a partner's month add up to `month_facts`. One of a single side has NULL for the other.
SELECT
    totals.connection, totals.partner, totals.month, totals.currency, totals.plan, totals.metric,
    totals.unit, totals.region, totals.organization, totals.kind,
    coalesce(sum(totals.rows_now) FILTER (totals.side = 'usage'), 0)::BIGINT AS used_rows,
    sum(totals.quantity_now) FILTER (totals.side = 'usage') AS used_quantity,
    sum(totals.amount_now) FILTER (totals.side = 'usage') AS used_amount,
    coalesce(sum(totals.rows_now) FILTER (totals.side = 'billing'), 0)::BIGINT AS billed_rows,
    sum(totals.quantity_now) FILTER (totals.side = 'billing') AS billed_quantity,
    sum(totals.amount_now) FILTER (totals.side = 'billing') AS billed_amount
FROM dated_totals AS totals
WHERE totals.rows_now > 0
GROUP BY ALL
