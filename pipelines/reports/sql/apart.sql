-- Bills that do not count, or that are credit notes. `total` counts all rows.
WITH reasons AS (
    SELECT
        billed.apart AS reason, billed.currency,
        count(DISTINCT (billed.connection, billed.bill)) AS bills, sum(billed.amount) AS amount
    FROM reconciliation.billed AS billed
    WHERE billed.apart IS NOT NULL
    GROUP BY billed.apart, billed.currency
)
SELECT reasons.*, count(*) OVER () AS total
FROM reasons
ORDER BY reasons.bills DESC, reasons.reason, reasons.currency
LIMIT 8
