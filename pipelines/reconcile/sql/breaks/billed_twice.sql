-- question: Is no usage billed more than once?
-- needs: usage.id billing.line_usage
-- remedy: Dispute the second bill. The bill that was issued first counts.
WITH ranked AS (
    SELECT
        billed.*, unbalanced.used_rows,
        row_number() OVER (
            PARTITION BY billed.connection, billed.key
            ORDER BY billed.issued_at, billed.number, billed.bill, billed.id
        ) AS place
    FROM odd_billed AS billed
    JOIN unbalanced ON unbalanced.connection = billed.connection AND unbalanced.key = billed.key
    WHERE unbalanced.status = 'billed twice' AND billed.apart IS NULL
)
SELECT
    again.connection, again.partner, again.month, again.currency, 'billing' AS side, again.id,
    again.quantity, again.amount, again._scan_id, again._page, again._row,
    again.bill AS subject, 'usage on two bills' AS cause
FROM ranked AS again
WHERE again.place > again.used_rows
