-- question: Is no usage billed more than once?
-- needs: matches usage.id billing.line_usage
-- remedy: Dispute the second bill. The bill that was issued first counts.
WITH ranked AS (
    SELECT
        billed.*, matches.used_rows,
        row_number() OVER (
            PARTITION BY billed.connection, billed.key, billed.currency
            ORDER BY billed.issued_at, billed.number, billed.bill, billed.id
        ) AS place
    FROM compared AS billed
    JOIN reconciliation.matches AS matches
        ON matches.connection = billed.connection AND matches.key = billed.key
        AND matches.currency IS NOT DISTINCT FROM billed.currency
    WHERE matches.status = 'billed twice' AND billed.side = 'billing' AND billed.apart IS NULL
)
SELECT
    again.connection, again.partner, again.month, again.currency, 'billing' AS side, again.id,
    again.quantity, again.amount, again._scan_id, again._page, again._row,
    again.bill AS subject, 'usage on two bills' AS cause
FROM ranked AS again
WHERE again.place > again.used_rows
