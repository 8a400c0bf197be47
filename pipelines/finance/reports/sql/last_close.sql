-- The version that was published at the last sign-off, and every month that is signed off.
SELECT
    closes.version, coalesce(closes.approved_at, closes.closed_at) AS closed_at,
    list(closes.month) OVER (ORDER BY closes.month
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS months
FROM reconciliation.closes AS closes
WHERE closes.state <> 'reopened' AND closes.connections IS NULL
ORDER BY coalesce(closes.approved_at, closes.closed_at) DESC, closes.month DESC
LIMIT 1
