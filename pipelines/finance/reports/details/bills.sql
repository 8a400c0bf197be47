-- The bills of open breaks, then the bills and credit notes of the two newest months that have
-- begun, and those of which something is still to be paid; the newest months first.
-- A bill is named by its number, if it has one: identifiers that say nothing take much of the file.
WITH begun AS (
    SELECT DISTINCT bills.month
    FROM reconciliation.bill_totals AS bills
    CROSS JOIN as_of
    WHERE bills.month <= as_of.as_of::DATE
    ORDER BY bills.month DESC
    LIMIT 2
), of_breaks AS (
    SELECT DISTINCT rows.connection, regexp_replace(rows.id, '#(\d+|rest)$', '') AS bill
    FROM reconciliation.break_rows AS rows
    JOIN reconciliation.breaks AS breaks USING (break_id)
    WHERE rows.side = 'billing' AND breaks.state <> 'resolved'
)
SELECT
    bills.connection, coalesce(bills.number, bills.bill) AS bill, bills.partner, bills.partner_id,
    strftime(bills.month, '%Y-%m') AS month, bills.currency,
    strftime(bills.issued_at, '%Y-%m-%d') AS issued, strftime(open.due_on, '%Y-%m-%d') AS due,
    coalesce(bills.set_apart, 'bill') AS kind,
    if(kind IN ('bill', 'credit note'), exact(bills.billed), NULL) AS billed,
    if(kind IN ('bill', 'credit note'), NULL, exact(bills.billed)) AS not_counted,
    bills.usage_lines, exact(open.open_amount) AS open
FROM finance.bills AS bills
LEFT JOIN of_breaks ON of_breaks.connection = bills.connection AND of_breaks.bill = bills.bill
LEFT JOIN to_pay AS open
    ON open.connection = bills.connection AND open.bill = bills.bill
    AND open.currency IS NOT DISTINCT FROM bills.currency
WHERE of_breaks.bill IS NOT NULL OR bills.month IN (SELECT begun.month FROM begun)
    OR open.open_amount <> 0
ORDER BY of_breaks.bill IS NULL, bills.month DESC, bills.partner, bills.partner_id, bill
