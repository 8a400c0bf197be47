-- The newest three months up to that of the data, and what was signed off last of each; all other
-- months together are a row without a month.
WITH closes AS (
    SELECT closes.*
    FROM reconciliation.closes AS closes
    QUALIFY closes.number = max(closes.number) OVER (PARTITION BY closes.month)
), newest AS (
    SELECT DISTINCT months.month
    FROM months
    CROSS JOIN as_of
    WHERE months.month <= coalesce(as_of.as_of::DATE, DATE '9999-12-01')
    ORDER BY months.month DESC
    LIMIT 3
)
SELECT
    months.currency, newest.month, any_value(closes.state) AS state,
    any_value(closes.closed_at) AS closed_at, any_value(closes.changed_records) AS changed_records,
    sum(months.difference) AS difference, bool_and(months.is_balanced) AS is_balanced
FROM months
LEFT JOIN newest ON newest.month = months.month
LEFT JOIN closes ON closes.month = newest.month
GROUP BY months.currency, newest.month
