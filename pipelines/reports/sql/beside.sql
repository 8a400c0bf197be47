-- Months that no chart shows. `total` counts all rows.
SELECT months.*, count(*) OVER () AS total
FROM months
ANTI JOIN trend
    ON trend.month = months.month AND trend.currency IS NOT DISTINCT FROM months.currency
ORDER BY months.month DESC NULLS LAST, months.currency
LIMIT 6
