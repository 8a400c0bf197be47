-- Each month of each partner; the newest months come first.
SELECT
    months.connection, months.partner, months.partner_id,
    strftime(months.month, '%Y-%m') AS month, months.currency, exact(months.used) AS used,
    exact(months.billed) AS billed, exact(months.credited) AS credited,
    exact(months.difference) AS difference, CASE WHEN months.verdict = 'tentative' THEN 'not due yet'
        WHEN months.verdict = 'fees' THEN 'balanced but for charges without usage'
        WHEN months.verdict = 'balanced' AND ended.connection IS NOT NULL THEN 'not proven'
        ELSE months.verdict END AS verdict,
    months.cause, months.open_breaks
FROM finance.partner_months AS months
LEFT JOIN ended_usage AS ended ON ended.connection = months.connection
    AND last_day(months.month) > ended.day AND last_day(months.month) < ended.read_on
ORDER BY
    months.month DESC NULLS LAST, months.partner, months.partner_id, months.connection,
    months.currency
