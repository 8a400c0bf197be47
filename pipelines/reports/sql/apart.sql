-- Bills that do not count, up to five rows with credit notes. Credit notes count in the difference,
-- so all of them are shown. `total` counts all rows.
WITH reasons AS (
    SELECT
        billed.apart AS reason, billed.currency, billed.apart = 'credit note' AS counts,
        count(DISTINCT (billed.connection, billed.bill)) AS bills, sum(billed.amount) AS amount
    FROM reconciliation.billed AS billed
    WHERE billed.apart IS NOT NULL
    GROUP BY billed.apart, billed.currency
)
SELECT reasons.* EXCLUDE (counts), count(*) OVER () AS total
FROM reasons
LEFT JOIN currencies ON currencies.currency IS NOT DISTINCT FROM reasons.currency
WINDOW important AS (
    ORDER BY reasons.counts DESC, currencies.place, reasons.bills DESC, reasons.reason
)
QUALIFY reasons.counts OR row_number() OVER important <= 5
ORDER BY reasons.counts DESC, reasons.reason, currencies.place
