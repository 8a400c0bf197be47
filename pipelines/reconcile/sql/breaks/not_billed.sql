-- question: Is all usage of months whose bills are due on a bill?
-- needs: match usage.partner usage.period
-- absent: billing
-- remedy: Put late usage on the next bill. Ask why the bill lacks the missing usage.
WITH issued AS (
    SELECT billed.connection, billed.partner, billed.month, max(billed.issued_at) AS last
    FROM reconciliation.billed AS billed
    WHERE billed.apart IS NULL
    GROUP BY billed.connection, billed.partner, billed.month
)
SELECT
    used.connection, used.partner, used.month, used.currency, 'usage' AS side, used.id,
    used.quantity, used.amount, used._scan_id, used._page, used._row,
    CASE WHEN used.recorded_at > issued.last THEN 'recorded after the last bill'
         ELSE 'missing on the bill' END AS cause,
    concat_ws('|', used.partner, used.month, used.currency, cause) AS subject
FROM reconciliation.used AS used
SEMI JOIN unbalanced
    ON unbalanced.connection = used.connection AND unbalanced.status = 'not billed'
    AND unbalanced.key = CASE WHEN getvariable('match_by') = 'usage' THEN used.id
        ELSE concat_ws('|', used.partner, used.month, used.currency) END
LEFT JOIN issued
    ON issued.connection = used.connection AND issued.partner = used.partner
    AND issued.month = used.month
