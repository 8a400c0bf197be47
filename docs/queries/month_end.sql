-- What did we know at the end of October, and what do we know of the same bills' currencies now?
-- as_of takes a moment: the rows as the last reading before it left them.
WITH known AS (
    SELECT currency, count(*) AS bills, sum(total) AS total
    FROM history.billing_as_of(TIMESTAMPTZ '2026-11-01 00:00:00+00')
    GROUP BY currency
),
today AS (
    SELECT currency, count(*) AS bills, sum(total) AS total
    FROM current.billing
    GROUP BY currency
)
SELECT
    currency,
    known.bills AS bills_then,
    today.bills AS bills_now,
    known.total AS total_then,
    today.total AS total_now,
    coalesce(today.total, 0) - coalesce(known.total, 0) AS difference
FROM known
FULL JOIN today USING (currency)
ORDER BY currency;
