-- question: Is there a record of usage for every billed line that refers to one?
-- needs: match billing.partner
-- absent: usage
-- remedy: Ask which usage the bill is for before it is paid. Lines without a reference are fees.
SELECT
    billed.connection, billed.partner, billed.month, billed.currency, 'billing' AS side, billed.id,
    billed.quantity, billed.amount, billed._scan_id, billed._page, billed._row,
    billed.bill AS subject, 'billed without usage' AS cause
FROM odd_billed AS billed
JOIN unbalanced ON unbalanced.connection = billed.connection AND unbalanced.key = billed.key
WHERE unbalanced.status = 'not used' AND billed.apart IS NULL
