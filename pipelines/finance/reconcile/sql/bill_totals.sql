-- What each bill bills, with its lines, and the days on which the service says it is due and was paid.
WITH totals AS (
    SELECT
        billed.connection, billed.bill, billed._key, any_value(billed.number) AS number,
        any_value(billed.partner) AS partner, max(billed.month) AS month,
        max(billed.month_from) AS month_from, any_value(billed.currency) AS currency,
        any_value(billed.issued_at) AS issued_at,
        count(*) FILTER (billed.reference IS NOT NULL) AS usage_lines,
        sum(billed.amount) AS amount, any_value(billed.apart) AS apart
    FROM temp.billed AS billed
    GROUP BY billed.connection, billed.bill, billed._key
)
SELECT totals.*, payments.due_on, payments.paid_on
FROM totals
LEFT JOIN temp.payments AS payments USING (connection, _key)
