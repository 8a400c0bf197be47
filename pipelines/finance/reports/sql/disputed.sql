-- What is still to be paid of bills that have an open break: the amount may be wrong.
-- needs: currencies
SELECT receivables.currency, count(*) AS bills, sum(receivables.open) AS open
FROM finance.receivables AS receivables
SEMI JOIN (FROM finance.bills_with_breaks WHERE is_open) AS found USING (connection, bill)
JOIN currencies ON currencies.currency IS NOT DISTINCT FROM receivables.currency
GROUP BY receivables.currency, currencies.place
ORDER BY currencies.place
