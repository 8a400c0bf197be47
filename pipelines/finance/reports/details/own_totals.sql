-- Totals of own books beside those of the service; the newest months come first.
WITH open AS (
    SELECT breaks.own_source, breaks.month, breaks.currency, count(*) AS breaks
    FROM open_breaks AS breaks
    WHERE breaks.own_source IS NOT NULL
    GROUP BY ALL
)
SELECT
    totals.source, totals.connection, strftime(totals.month, '%Y-%m') AS month, totals.currency,
    totals.own_rows, if(totals.own_rows = 0, '0', exact(totals.own_amount)) AS own,
    totals.service_rows,
    if(totals.service_rows = 0, '0', exact(totals.service_amount)) AS service,
    exact(totals.difference) AS difference, coalesce(open.breaks, 0) AS open_breaks
FROM reconciliation.own_totals AS totals
LEFT JOIN open ON open.own_source = totals.source
    AND open.month IS NOT DISTINCT FROM totals.month
    AND open.currency IS NOT DISTINCT FROM totals.currency
ORDER BY totals.month DESC NULLS LAST, totals.source, totals.currency
