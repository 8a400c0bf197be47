-- The day of the newest usage up to that of the data; of monthly usage, the first of a month.
SELECT
    max(used.day) AS day, bool_or(day(used.day) > 1) AS has_days,
    date_diff('day', max(used.day), any_value(as_of.as_of)::DATE) AS days_before
FROM reconciliation.used AS used
CROSS JOIN as_of
WHERE used.day <= coalesce(as_of.as_of::DATE, DATE '9999-12-31')
