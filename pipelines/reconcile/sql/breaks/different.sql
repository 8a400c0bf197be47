-- question: Does each bill show the partner, currency, quantity and amount of its usage?
-- needs: exceptions usage.amount billing.amount
-- remedy: Compare both records with `partner-sync trace break`, then dispute or accept the bill.
SELECT
    rows.* REPLACE (rows.pair_partner AS partner, rows.pair_month AS month), rows.key AS subject,
    CASE WHEN rows.status IN ('other partner', 'other currency') THEN rows.status
         WHEN max(rows.updated_at) FILTER (rows.side = 'usage') OVER one
            > max(rows.issued_at) OVER one THEN 'changed after the bill'
         WHEN getvariable('match_by') = 'month'
            AND count(DISTINCT rows.bill || '|' || rows.amount) OVER one
                > count(DISTINCT rows.amount) FILTER (rows.side = 'billing') OVER one
            THEN 'two bills of the same amount'
         ELSE rows.status END AS cause
FROM paired AS rows
WHERE rows.status IN ('other partner', 'other currency', 'other quantity', 'other amount')
WINDOW one AS (PARTITION BY rows.connection, rows.key, rows.currency)
