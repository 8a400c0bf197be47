-- What is still to be paid: of bills that bill too much, by an open break, and of all others; and what
-- is open the other way: credit notes that are not used up, and bills of which less than nothing is open.
-- needs: currencies
WITH open AS (
    SELECT
        receivables.currency, receivables.open, coalesce(receivables.open < 0, false) AS is_credit,
        in_question.bill IS NOT NULL AS is_in_question
    FROM finance.receivables AS receivables
    LEFT JOIN finance.bills_with_breaks AS in_question
        ON in_question.connection = receivables.connection AND in_question.bill = receivables.bill
        AND in_question.is_in_question
)
SELECT
    open.currency,
    count(*) FILTER (NOT open.is_credit AND open.is_in_question) AS bills_in_question,
    count(*) FILTER (NOT open.is_credit AND NOT open.is_in_question) AS bills_not_in_question,
    count(*) FILTER (open.is_credit) AS credit_notes,
    if(bills_in_question = 0, 0, sum(open.open) FILTER (NOT open.is_credit AND open.is_in_question))
        AS in_question,
    if(bills_not_in_question = 0, 0,
        sum(open.open) FILTER (NOT open.is_credit AND NOT open.is_in_question)) AS not_in_question,
    coalesce(sum(open.open) FILTER (open.is_credit), 0) AS credited,
    count(*) FILTER (open.open IS NULL) AS unknown_bills
FROM open
JOIN currencies ON currencies.currency IS NOT DISTINCT FROM open.currency
GROUP BY open.currency, currencies.place
ORDER BY currencies.place
