-- What is still to be paid, by currency, by when it is due and by how long it has been due. Credit notes
-- that are not used up are apart: `to_be_paid` has them.
-- needs: currencies
SELECT
    receivables.currency, receivables.due_in, receivables.days, count(*) AS bills,
    sum(receivables.open) AS open
FROM finance.receivables AS receivables
JOIN currencies ON currencies.currency IS NOT DISTINCT FROM receivables.currency
WHERE receivables.open IS NULL OR receivables.open > 0
GROUP BY receivables.currency, receivables.due_in, receivables.days, currencies.place
ORDER BY currencies.place
