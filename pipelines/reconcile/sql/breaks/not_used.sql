-- question: Is there a record of usage for every billed line that refers to one?
-- needs: matches billing.partner
-- remedy: Ask which usage the bill is for before it is paid. Lines without a reference are fees.
SELECT billed.*, billed.bill AS subject, 'billed without usage' AS cause
FROM compared AS billed
JOIN reconciliation.matches AS matches
    ON matches.connection = billed.connection AND matches.key = billed.key
    AND matches.currency IS NOT DISTINCT FROM billed.currency
WHERE matches.status = 'not used' AND billed.side = 'billing' AND billed.apart IS NULL
