-- question: Is no usage billed more than once?
-- needs: exceptions usage.id billing.line_usage
-- remedy: Dispute the second bill. The bill that was issued first counts.
SELECT billed.*, billed.bill AS subject, 'usage on two bills' AS cause
FROM paired AS billed
WHERE billed.status = 'billed twice' AND billed.side = 'billing' AND billed.apart IS NULL
QUALIFY billed.used_rows < row_number() OVER (
    PARTITION BY billed.connection, billed.key, billed.currency
    ORDER BY billed.issued_at, billed.number, billed.bill, billed.id
)
