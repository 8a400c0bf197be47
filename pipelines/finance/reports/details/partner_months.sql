-- Each month of each partner; the newest months come first.
SELECT
    months.connection, months.partner, months.partner_id,
    strftime(months.month, '%Y-%m') AS month, months.currency, exact(months.used) AS used,
    exact(months.billed) AS billed, exact(months.credited) AS credited,
    exact(months.difference) AS difference, CASE months.verdict WHEN 'tentative' THEN 'not due yet'
        WHEN 'fees' THEN 'accepted fees' ELSE months.verdict END AS verdict,
    months.cause, months.open_breaks
FROM finance.partner_months AS months
ORDER BY
    months.month DESC NULLS LAST, months.partner, months.partner_id, months.connection,
    months.currency
