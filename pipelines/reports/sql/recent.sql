-- The month of the data and the two before it, and what was signed off last of each; all other
-- months together are a row without a month. `difference` is NULL where a currency has no amounts.
WITH closes AS (
    SELECT closes.*
    FROM reconciliation.closes AS closes
    QUALIFY closes.number = max(closes.number) OVER (PARTITION BY closes.month)
), newest AS (
    SELECT (date_trunc('month', as_of.as_of::DATE) - to_months(unnest([0, 1, 2])))::DATE AS month
    FROM as_of
    UNION ALL
    SELECT NULL
)
SELECT
    currencies.currency, newest.month, any_value(closes.state) AS state,
    any_value(closes.closed_at) AS closed_at, any_value(closes.changed_records) AS changed_records,
    sum(months.difference) AS difference, bool_and(months.is_balanced) AS is_balanced
FROM newest
CROSS JOIN currencies
LEFT JOIN closes ON closes.month = newest.month
LEFT JOIN (
    SELECT months.*, newest.month AS shown
    FROM months
    LEFT JOIN newest ON newest.month = months.month
) AS months
    ON months.currency IS NOT DISTINCT FROM currencies.currency
    AND months.shown IS NOT DISTINCT FROM newest.month
GROUP BY currencies.currency, newest.month
