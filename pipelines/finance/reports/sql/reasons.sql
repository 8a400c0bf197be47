-- The difference of a currency by reason and by the places of months. What breaks and lines
-- without usage do not explain of a partner's month has the likely cause of that month.
-- needs: breaks places
WITH found AS (
    SELECT
        breaks.connection, breaks.partner, breaks.month, breaks.currency, breaks.difference,
        CASE breaks.outcome WHEN 'open' THEN 'open breaks' WHEN 'now uncertain' THEN 'uncertain breaks'
             ELSE breaks.outcome END AS reason, 1 AS number
    FROM breaks
    WHERE breaks.outcome <> 'no longer found' AND breaks.own_source IS NULL
    UNION ALL BY NAME
    SELECT
        lines.connection, lines.partner, lines.month, lines.currency,
        lines.amount AS difference, lines.reason, lines.lines AS number
    FROM reconciliation.without_usage AS lines
), explained AS (
    SELECT
        found.connection, found.partner, found.month, found.currency,
        sum(found.difference) AS difference
    FROM found
    GROUP BY ALL
), parts AS (
    SELECT found.month, found.currency, found.reason, found.difference, found.number
    FROM found
    UNION ALL BY NAME
    SELECT
        coalesce(months.month, explained.month) AS month,
        coalesce(months.currency, explained.currency) AS currency,
        coalesce(months.difference, 0) - coalesce(explained.difference, 0) AS difference,
        CASE WHEN months.verdict = 'tentative' THEN 'not due yet'
             WHEN months.verdict = 'within tolerance' THEN months.verdict
             WHEN starts_with(months.cause, 'unknown partner ')
                THEN 'unknown partner (opposite amount, at the known partner)'
             WHEN starts_with(months.cause, 'other partner ')
                THEN 'usage and bill name two partners (opposite amount, at the other one)'
             WHEN explained.connection IS NOT NULL
                THEN 'months with several causes'
             ELSE months.cause END AS reason, 1 AS number
    FROM finance.partner_months AS months
    FULL JOIN explained ON explained.connection = months.connection
        AND explained.partner IS NOT DISTINCT FROM months.partner_id
        AND explained.month IS NOT DISTINCT FROM months.month
        AND explained.currency IS NOT DISTINCT FROM months.currency
)
SELECT
    parts.reason, parts.currency, places.place, sum(parts.number)::BIGINT AS number,
    sum(parts.difference) AS difference
FROM parts
LEFT JOIN places ON places.month IS NOT DISTINCT FROM parts.month
WHERE parts.difference <> 0 OR parts.reason IN ('open breaks', 'uncertain breaks')
GROUP BY parts.reason, parts.currency, places.place
ORDER BY parts.reason
