-- Months of the charts without gaps: up to 120 for each currency with open breaks, and for the
-- first four. What is billed in advance is among them; a month more than a year ahead is an error
-- in the data.
-- needs: as_of currencies months
WITH charted AS (
    SELECT currencies.currency, currencies.place
    FROM currencies
    WHERE currencies.place <= 4 OR currencies.open_breaks > 0
), known AS (
    SELECT months.*, charted.place
    FROM months
    JOIN charted ON charted.currency IS NOT DISTINCT FROM months.currency
    CROSS JOIN as_of
    WHERE months.month <= coalesce(as_of.as_of::DATE, DATE '9999-12-01') + INTERVAL 12 MONTH
    QUALIFY months.month > max(months.month) OVER (PARTITION BY charted.place)
        - INTERVAL 120 MONTH
), spans AS (
    SELECT
        known.place, known.currency,
        unnest(generate_series(min(known.month), max(known.month), INTERVAL 1 MONTH)) AS month
    FROM known
    GROUP BY known.place, known.currency
)
SELECT
    spans.currency, spans.month::DATE AS month, coalesce(known.used, 0) AS used,
    coalesce(known.billed, 0) AS billed, coalesce(known.difference, 0) AS difference
FROM spans
LEFT JOIN known USING (place, month)
ORDER BY spans.place, spans.month
