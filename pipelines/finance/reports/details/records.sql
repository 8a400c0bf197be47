-- The records of each break: of open ones in the order of these, then of those with own books, then
-- of resolved ones.
-- A record is named by its identifier; a line by its bill, `#` and its place.
WITH bills AS (
    SELECT bills.connection, bills.bill, any_value(bills.number) AS number,
        any_value(bills.issued_at) AS issued_at
    FROM reconciliation.bill_totals AS bills
    GROUP BY bills.connection, bills.bill
)
SELECT
    rows.break_id, CASE WHEN rows.side = 'usage' THEN 'usage record' WHEN rows.side = 'own' THEN 'own books'
        WHEN breaks.own_source IS NULL THEN 'line of a bill' ELSE 'bill' END AS side, rows.id,
    rows.connection, CASE WHEN rows.side <> 'billing' OR breaks.own_source IS NOT NULL THEN NULL
        WHEN rows.id LIKE '%#rest' THEN 'total minus lines'
        ELSE regexp_extract(rows.id, '#\d+$') END AS line,
    coalesce(bills.number, bills.bill) AS bill,
    strftime(bills.issued_at, '%Y-%m-%d') AS issued, exact(rows.quantity) AS quantity,
    exact(rows.amount) AS amount
FROM reconciliation.break_rows AS rows
JOIN reconciliation.breaks AS breaks USING (break_id)
JOIN break_order AS places USING (break_id)
LEFT JOIN bills ON rows.side = 'billing' AND bills.connection = rows.connection
    AND bills.bill = regexp_replace(rows.id, '#(\d+|rest)$', '')
ORDER BY breaks.state = 'resolved', breaks.own_source IS NOT NULL,
    breaks.uncertain IS NOT NULL, places.place, rows.side DESC, rows.id
