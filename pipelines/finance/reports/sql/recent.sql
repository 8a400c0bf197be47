-- The differences of each place. `difference` is NULL where a currency has no amounts.
-- needs: currencies months places
SELECT
    currencies.currency, places.place,
    if(places.place < 3, any_value(places.month), NULL) AS month,
    list(DISTINCT places.month ORDER BY places.month DESC) AS months,
    any_value(places.state) FILTER (places.place < 4 OR places.state = 'not known') AS state,
    coalesce(min(places.age) > 0, true) AS is_over, any_value(places.closed_at) AS closed_at,
    sum(places.changed_records)::BIGINT AS changed_records,
    sum(months.difference) AS difference, bool_and(months.is_balanced) AS is_balanced,
    coalesce(bool_or(months.is_doubtful), false) AS is_doubtful,
    min(months.usage_until) AS usage_until
FROM places
CROSS JOIN currencies
LEFT JOIN months ON months.month IS NOT DISTINCT FROM places.month
    AND months.currency IS NOT DISTINCT FROM currencies.currency
GROUP BY currencies.currency, places.place
