-- What is still to be paid of bills that have an open break: the amount may be wrong.
-- needs: currencies
WITH of_breaks AS (
    SELECT DISTINCT rows.connection, regexp_replace(rows.id, '#(\d+|rest)$', '') AS bill
    FROM reconciliation.break_rows AS rows
    JOIN reconciliation.breaks AS breaks USING (break_id)
    WHERE rows.side = 'billing' AND breaks.state <> 'resolved'
)
SELECT receivables.currency, count(*) AS bills, sum(receivables.open) AS open
FROM finance.receivables AS receivables
SEMI JOIN of_breaks USING (connection, bill)
JOIN currencies ON currencies.currency IS NOT DISTINCT FROM receivables.currency
GROUP BY receivables.currency, currencies.place
ORDER BY currencies.place
