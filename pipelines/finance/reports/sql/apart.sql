-- Credit notes, which count in the difference, and bills that do not count.
SELECT
    billed.apart AS reason, billed.currency, billed.apart = 'credit note' AS counts,
    count(DISTINCT (billed.connection, billed.bill)) AS number, sum(billed.amount) AS difference
FROM reconciliation.bill_totals AS billed
WHERE billed.apart IS NOT NULL
GROUP BY billed.apart, billed.currency
ORDER BY counts DESC, reason, billed.currency
