-- question: Does each bill show the partner, currency, quantity and amount of its usage?
-- needs: matches usage.amount billing.amount
-- remedy: Compare both records with `partner-sync trace break`, then dispute the bill or accept it.
SELECT
    rows.* REPLACE (matches.partner AS partner, matches.month AS month), rows.key AS subject,
    CASE WHEN matches.status IN ('other partner', 'other currency') THEN matches.status
         WHEN max(rows.updated_at) FILTER (rows.side = 'usage') OVER one
            > max(rows.issued_at) OVER one THEN 'changed after the bill'
         WHEN getvariable('match_by') = 'month'
            AND count(*) FILTER (rows.side = 'billing') OVER one
                > count(DISTINCT rows.amount) FILTER (rows.side = 'billing') OVER one
            THEN 'two bills of the same amount'
         ELSE matches.status END AS cause
FROM compared AS rows
JOIN reconciliation.matches AS matches
    ON matches.connection = rows.connection AND matches.key = rows.key
    AND matches.currency IS NOT DISTINCT FROM rows.currency
WHERE matches.status IN ('other partner', 'other currency', 'other quantity', 'other amount')
WINDOW one AS (PARTITION BY rows.connection, rows.key, rows.currency)
