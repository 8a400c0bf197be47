-- question: Is all usage of months whose bills are due on a bill?
-- needs: match usage.partner usage.period
-- absent: billing
-- remedy: Put late usage on the next bill. Ask why the bill lacks the missing usage.
WITH issued AS (
    SELECT bills.connection, bills.partner, bills.month, max(bills.issued_at) AS last
    FROM reconciliation.bills AS bills
    WHERE bills.apart IS NULL
    GROUP BY bills.connection, bills.partner, bills.month
)
SELECT
    used.connection, used.partner, used.month, used.currency, 'usage' AS side, used.id,
    used.quantity, used.amount, used._scan_id, used._page, used._row,
    CASE WHEN used.recorded_at > issued.last THEN 'recorded after the last bill'
         ELSE 'missing on the bill' END AS cause,
    concat_ws('|', used.partner, used.month, used.currency, cause) AS subject
FROM odd_used AS used
JOIN unbalanced ON unbalanced.connection = used.connection AND unbalanced.key = used.key
LEFT JOIN issued
    ON issued.connection = used.connection AND issued.partner = used.partner
    AND issued.month = used.month
WHERE unbalanced.status = 'not billed'
