-- What is still to be paid: of bills that bill too much, by an open break, and of all others; and what
-- is open the other way: credit notes that are not used up, and bills of which less than nothing is open.
-- needs: currencies
WITH open AS (
    SELECT
        receivables.currency, receivables.open, coalesce(receivables.open < 0, false) AS is_credit,
        disputed.bill IS NOT NULL AS is_disputed
    FROM finance.receivables AS receivables
    LEFT JOIN finance.bills_with_breaks AS disputed
        ON disputed.connection = receivables.connection AND disputed.bill = receivables.bill
        AND disputed.is_disputed
)
SELECT
    open.currency,
    count(*) FILTER (NOT open.is_credit AND open.is_disputed) AS disputed_bills,
    count(*) FILTER (NOT open.is_credit AND NOT open.is_disputed) AS undisputed_bills,
    count(*) FILTER (open.is_credit) AS credit_notes,
    if(disputed_bills = 0, 0, sum(open.open) FILTER (NOT open.is_credit AND open.is_disputed))
        AS disputed,
    if(undisputed_bills = 0, 0,
        sum(open.open) FILTER (NOT open.is_credit AND NOT open.is_disputed)) AS undisputed,
    coalesce(sum(open.open) FILTER (open.is_credit), 0) AS credited,
    count(*) FILTER (open.open IS NULL) AS unknown_bills
FROM open
JOIN currencies ON currencies.currency IS NOT DISTINCT FROM open.currency
GROUP BY open.currency, currencies.place
ORDER BY currencies.place
