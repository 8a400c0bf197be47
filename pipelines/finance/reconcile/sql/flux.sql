-- question: Why is a month of a partner not like the one before?
-- needs: flux_items
-- remedy: See the plans and metrics of the partner and month in finance.flux_items.
SELECT
    items.connection, items.side, items.partner, items.currency, items.month,
    sum(items.amount_before) AS amount_before, sum(items.amount) AS amount,
    sum(items.difference) AS difference, sum(items.late) AS late, sum(items.restated) AS restated,
    sum(items.credits) AS credits, sum(items.fees) AS fees, sum(items.new) AS new,
    sum(items.lost) AS lost, sum(items.volume) AS volume, sum(items.price) AS price,
    sum(items.unexplained) AS unexplained, items.is_due, items.history_from
FROM reconciliation.flux_items AS items
GROUP BY
    items.connection, items.side, items.partner, items.currency, items.month, items.is_due,
    items.history_from
