-- The newest three months up to that of the data.
SELECT months.currency, months.month, months.difference, months.open_breaks
FROM months
CROSS JOIN as_of
WHERE months.month <= coalesce(as_of.as_of::DATE, DATE '9999-12-01')
QUALIFY dense_rank() OVER (ORDER BY months.month DESC) <= 3
