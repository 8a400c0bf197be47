-- question: Is no usage billed more than once?
-- needs: exceptions usage.id billing.line_usage
-- remedy: Dispute the second bill. The bill that was issued first counts.
SELECT
    billed.*, billed.bill AS subject,
    concat('usage is also on bill ', first_value(coalesce(billed.number, billed.bill)) OVER one)
        AS cause
FROM paired AS billed
WHERE billed.status = 'billed twice' AND billed.side = 'billing' AND billed.apart IS NULL
WINDOW one AS (
    PARTITION BY billed.connection, billed.key, billed.currency
    ORDER BY billed.issued_at, billed.number, billed.bill, billed.id
)
QUALIFY billed.used_rows < row_number() OVER one
