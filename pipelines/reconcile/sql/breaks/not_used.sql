-- question: Is there a record of usage for every billed line that refers to one?
-- needs: match billing.partner
-- absent: usage
-- remedy: Ask which usage the bill is for before it is paid. Lines without a reference are fees.
SELECT
    billed.connection, billed.partner, billed.month, billed.currency, 'billing' AS side, billed.id,
    billed.quantity, billed.amount, billed._scan_id, billed._page, billed._row,
    billed.bill AS subject, 'billed without usage' AS cause
FROM reconciliation.billed AS billed
SEMI JOIN unbalanced
    ON unbalanced.connection = billed.connection AND unbalanced.status = 'not used'
    AND unbalanced.key = CASE WHEN getvariable('match_by') = 'usage' THEN billed.reference
        ELSE concat_ws('|', billed.partner, billed.month, billed.currency) END
WHERE billed.apart IS NULL
