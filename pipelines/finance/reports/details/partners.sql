-- All months of a partner together, by currency. The largest open differences come first, whatever
-- their signs.
WITH found AS (
    SELECT
        breaks.connection, breaks.partner, breaks.currency,
        -sum(breaks.difference) FILTER (breaks.difference < 0) AS unbilled,
        sum(breaks.difference) FILTER (breaks.difference > 0) AS overbilled,
        count(*) AS open_breaks, max(breaks.age_days) AS age,
        string_agg(DISTINCT breaks.other_partner, ', ' ORDER BY breaks.other_partner) AS named
    FROM open_breaks AS breaks
    WHERE breaks.own_source IS NULL
    GROUP BY ALL
), sums AS (
    SELECT
        months.connection, months.partner_id, months.partner, months.currency,
        sum(months.used) AS used, sum(months.billed) AS billed, sum(months.credited) AS credited,
        sum(months.difference) AS difference
    FROM finance.partner_months AS months
    GROUP BY ALL
)
SELECT
    sums.connection, sums.partner, sums.partner_id, sums.currency, exact(sums.used) AS used,
    exact(sums.billed) AS billed, exact(sums.credited) AS credited,
    exact(sums.difference) AS difference, exact(coalesce(found.unbilled, 0)) AS unbilled,
    exact(coalesce(found.overbilled, 0)) AS overbilled,
    exact(sums.difference + coalesce(found.unbilled, 0) - coalesce(found.overbilled, 0)) AS other,
    coalesce(found.open_breaks, 0) AS open_breaks, found.age, found.named
FROM sums
LEFT JOIN found ON found.connection = sums.connection
    AND found.partner IS NOT DISTINCT FROM sums.partner_id
    AND found.currency IS NOT DISTINCT FROM sums.currency
ORDER BY
    coalesce(found.unbilled, 0) + coalesce(found.overbilled, 0) DESC, abs(sums.difference) DESC,
    sums.partner, sums.partner_id, sums.connection, sums.currency
