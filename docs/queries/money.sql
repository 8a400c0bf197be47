-- What was billed and credited, by currency and status? Sums, products and round() of DECIMAL stay
-- DECIMAL; `/` and avg() would be DOUBLE. off_by shows lines that are not quantity x unit_price.
WITH lines AS (
    SELECT
        _connection,
        billing_id,
        sum(amount) AS amount,
        sum(amount - round(quantity * unit_price, 3)) AS off_by
    FROM current.billing__lines
    GROUP BY _connection, billing_id
)
SELECT
    currency,
    status,
    count(*) AS bills,
    sum(subtotal) AS subtotal,
    sum(tax) AS tax,
    sum(total) AS total,
    coalesce(sum(credit__amount), 0) AS credited,
    sum(lines.amount) AS lines,
    sum(lines.off_by) AS off_by
FROM current.billing
LEFT JOIN lines USING (_connection, billing_id)
GROUP BY currency, status
ORDER BY currency, status;
