-- What is still to be paid: of bills that bill too much, by an open break, and of all others.
-- needs: currencies
SELECT
    receivables.currency, count(disputed.bill) AS disputed_bills,
    count(*) - disputed_bills AS undisputed_bills,
    if(disputed_bills = 0, 0, sum(receivables.open) FILTER (disputed.bill IS NOT NULL))
        AS disputed,
    if(undisputed_bills = 0, 0, sum(receivables.open) FILTER (disputed.bill IS NULL))
        AS undisputed,
    count(*) FILTER (receivables.open IS NULL) AS unknown_bills
FROM finance.receivables AS receivables
JOIN currencies ON currencies.currency IS NOT DISTINCT FROM receivables.currency
LEFT JOIN finance.bills_with_breaks AS disputed
    ON disputed.connection = receivables.connection AND disputed.bill = receivables.bill
    AND disputed.is_disputed
GROUP BY receivables.currency, currencies.place
ORDER BY currencies.place
