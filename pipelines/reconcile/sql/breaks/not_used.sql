-- question: Is there a record of usage for every billed line that refers to one?
-- needs: exceptions billing.partner
-- remedy: Ask which usage the bill is for before it is paid. Lines without a reference are fees.
-- A credit note of such a line belongs to the first bill that has it.
SELECT
    billed.*, 'billed without usage' AS cause,
    if(billed.apart IS NULL, billed.bill, min(billed.bill) FILTER (billed.apart IS NULL) OVER one)
        AS subject
FROM paired AS billed
WHERE billed.status = 'not used' AND billed.side = 'billing'
WINDOW one AS (PARTITION BY billed.connection, billed.key, billed.currency)
QUALIFY subject IS NOT NULL
