-- question: Does each bill show the partner, currency, quantity and amount of its usage?
-- needs: match usage.amount billing.amount
-- remedy: Compare both records with `partner-sync trace break`, then dispute the bill or accept it.
WITH rows AS (
    SELECT
        used.connection, used.key, 'usage' AS side, used.id, used.currency, used.quantity,
        used.amount, used.updated_at AS changed_at, NULL::TIMESTAMPTZ AS issued_at, used._scan_id, used._page,
        used._row
    FROM odd_used AS used
    UNION ALL
    SELECT
        billed.connection, billed.key, 'billing', billed.id, billed.currency,
        billed.quantity, billed.amount, NULL, billed.issued_at, billed._scan_id, billed._page, billed._row
    FROM odd_billed AS billed
    WHERE billed.apart IS NULL OR billed.apart = 'credit note'
)
SELECT
    rows.* EXCLUDE (key, changed_at, issued_at), unbalanced.key AS subject,
    unbalanced.partner, unbalanced.month,
    CASE WHEN unbalanced.status IN ('other partner', 'other currency') THEN unbalanced.status
         WHEN max(rows.changed_at) OVER one > max(rows.issued_at) OVER one
            THEN 'changed after the bill'
         WHEN getvariable('match_by') = 'month'
            AND count(*) FILTER (rows.side = 'billing') OVER one
                > count(DISTINCT rows.amount) FILTER (rows.side = 'billing') OVER one
            THEN 'two bills of the same amount'
         ELSE unbalanced.status END AS cause
FROM rows
JOIN unbalanced ON unbalanced.connection = rows.connection AND unbalanced.key = rows.key
WHERE unbalanced.status IN ('other partner', 'other currency', 'other quantity', 'other amount')
WINDOW one AS (PARTITION BY rows.connection, rows.key)
