-- question: Is there a record of usage for every billed line that refers to one?
-- needs: exceptions billing.partner
-- remedy: Ask which usage the bill is for before it is paid. Lines without a reference are fees.
SELECT billed.*, billed.bill AS subject, 'billed without usage' AS cause
FROM paired AS billed
WHERE billed.status = 'not used' AND billed.side = 'billing' AND billed.apart IS NULL
