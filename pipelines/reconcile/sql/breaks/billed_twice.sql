-- question: Is no usage billed more than once?
-- needs: matches usage.id billing.line_usage
-- remedy: Dispute the second bill. The bill that was issued first counts.
SELECT billed.*, billed.bill AS subject, 'usage on two bills' AS cause
FROM compared AS billed
JOIN reconciliation.matches AS matches
    ON matches.connection = billed.connection AND matches.key = billed.key
    AND matches.currency IS NOT DISTINCT FROM billed.currency
WHERE matches.status = 'billed twice' AND billed.side = 'billing' AND billed.apart IS NULL
QUALIFY matches.used_rows < row_number() OVER (
    PARTITION BY billed.connection, billed.key, billed.currency
    ORDER BY billed.issued_at, billed.number, billed.bill, billed.id
)
