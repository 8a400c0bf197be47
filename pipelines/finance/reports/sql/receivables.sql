-- What is still to be paid, by currency and by how long it has been due.
-- needs: currencies
SELECT
    receivables.currency, receivables.days, count(*) AS bills,
    sum(receivables.open) AS open
FROM finance.receivables AS receivables
JOIN currencies ON currencies.currency IS NOT DISTINCT FROM receivables.currency
GROUP BY receivables.currency, receivables.days, currencies.place
ORDER BY currencies.place
