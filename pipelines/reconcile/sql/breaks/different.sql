-- question: Does each bill show the partner, currency, quantity and amount of its usage?
-- needs: exceptions usage.amount billing.amount
-- remedy: Compare both records with `partner-sync trace break`, then dispute the bill or accept it.
SELECT
    rows.* REPLACE (exceptions.partner AS partner, exceptions.month AS month), rows.key AS subject,
    CASE WHEN exceptions.status IN ('other partner', 'other currency') THEN exceptions.status
         WHEN max(rows.updated_at) FILTER (rows.side = 'usage') OVER one
            > max(rows.issued_at) OVER one THEN 'changed after the bill'
         WHEN getvariable('match_by') = 'month'
            AND count(*) FILTER (rows.side = 'billing') OVER one
                > count(DISTINCT rows.amount) FILTER (rows.side = 'billing') OVER one
            THEN 'two bills of the same amount'
         ELSE exceptions.status END AS cause
FROM compared AS rows
JOIN reconciliation.exceptions AS exceptions
    ON exceptions.connection = rows.connection AND exceptions.key = rows.key
    AND exceptions.currency IS NOT DISTINCT FROM rows.currency
WHERE exceptions.status IN ('other partner', 'other currency', 'other quantity', 'other amount')
WINDOW one AS (PARTITION BY rows.connection, rows.key, rows.currency)
