-- The usage records and lines of bills of each open break, in the order of these.
-- A record is named by its identifier; a line by its bill, `#` and its place.
WITH bills AS (
    SELECT bills.connection, bills.bill, any_value(bills.number) AS number,
        any_value(bills.issued_at) AS issued_at
    FROM reconciliation.bill_totals AS bills
    GROUP BY bills.connection, bills.bill
)
SELECT
    rows.break_id, if(rows.side = 'usage', 'usage record', 'line of a bill') AS side, rows.id,
    coalesce(bills.number, bills.bill) AS bill,
    strftime(bills.issued_at, '%Y-%m-%d') AS issued, exact(rows.quantity) AS quantity,
    exact(rows.amount) AS amount
FROM reconciliation.break_rows AS rows
JOIN reconciliation.breaks AS breaks USING (break_id)
JOIN break_order AS places USING (break_id)
LEFT JOIN bills ON rows.side = 'billing' AND bills.connection = rows.connection
    AND bills.bill = regexp_replace(rows.id, '#(\d+|rest)$', '')
WHERE breaks.state <> 'resolved' AND breaks.own_source IS NULL
ORDER BY breaks.uncertain IS NOT NULL, places.place, rows.side DESC, rows.id
