-- The newest three months up to that of the data, and what was signed off last of each.
WITH closes AS (
    SELECT closes.*
    FROM reconciliation.closes AS closes
    QUALIFY closes.number = max(closes.number) OVER (PARTITION BY closes.month)
)
SELECT
    months.currency, months.month, months.difference, months.not_billed, months.not_used,
    months.open_breaks, closes.state
FROM months
CROSS JOIN as_of
LEFT JOIN closes ON closes.month = months.month
WHERE months.month <= coalesce(as_of.as_of::DATE, DATE '9999-12-01')
QUALIFY dense_rank() OVER (ORDER BY months.month DESC) <= 3
