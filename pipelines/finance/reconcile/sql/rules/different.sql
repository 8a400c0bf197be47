-- question: Does each bill show the partner, currency, quantity and amount of its usage?
-- label: Bill and usage differ
-- needs: exceptions usage.amount billing.amount
-- rests on: the side that has less
-- remedy: Compare both (`partner-sync trace break`), then dispute, have corrected or accept the bill.
-- Rounding that adds up is one break of the month.
WITH new_values AS (
    SELECT billed.connection, billed.key, min(billed.unseen) AS value
    FROM temp.billed AS billed
    WHERE billed.unseen IS NOT NULL AND billed.apart IS NOT NULL AND billed.key IS NOT NULL
    GROUP BY billed.connection, billed.key
)
SELECT
    rows.* EXCLUDE (of_bill) REPLACE (rows.pair_partner AS partner, rows.pair_month AS month),
    if(rows.status = 'rounding adds up',
        concat_ws('|', rows.pair_partner, rows.pair_month, rows.currency, rows.status),
        rows.key) AS subject,
    CASE WHEN rows.status = 'other currency'
            AND bool_or(rows.currency IS NULL) OVER (PARTITION BY rows.connection, rows.key)
            THEN 'no currency'
         WHEN rows.status IN ('other partner', 'other currency', 'rounding adds up') THEN rows.status
         WHEN coalesce(max(rows.unseen) OVER one, new_values.value) IS NOT NULL
            THEN concat('a bill has the new ', coalesce(max(rows.unseen) OVER one, new_values.value))
         WHEN max(rows.updated_at) FILTER (rows.side = 'usage') OVER one
            > max(rows.issued_at) OVER one THEN 'changed after the bill'
         WHEN getvariable('match_by') = 'month'
            AND count(DISTINCT rows.bill) FILTER (rows.of_bill IS NOT NULL) OVER one
                > count(DISTINCT rows.of_bill) OVER one
            THEN 'two bills of the same amount'
         ELSE rows.status END AS cause
FROM (
    -- What each bill has of the pair, unless a credit note takes it back.
    SELECT
        paired.*, if(paired.side = 'billing' AND paired.apart IS NULL AND NOT paired.is_credited, sum(paired.amount) OVER (
            PARTITION BY paired.connection, paired.key, paired.currency, paired.bill
        ), NULL) AS of_bill
    FROM paired
) AS rows
LEFT JOIN new_values ON new_values.connection = rows.connection AND new_values.key = rows.key
WHERE rows.status IN (
    'rounding adds up', 'other partner', 'other currency', 'other quantity', 'other amount')
WINDOW one AS (PARTITION BY rows.connection, rows.key, rows.currency)
