-- What is known of each month, by connection and currency. A month that was closed for some
-- connections is closed for these.
WITH unknown AS (
    SELECT DISTINCT
        missing.connection, missing.month, missing.currency, true AS is_unknown
    FROM reconciliation.missing_amounts AS missing
), found AS (
    SELECT
        breaks.connection, breaks.month, breaks.currency,
        -sum(breaks.difference) FILTER (breaks.outcome = 'open' AND breaks.difference < 0)
            AS unbilled,
        sum(breaks.difference) FILTER (breaks.outcome = 'open' AND breaks.difference > 0)
            AS overbilled,
        count(*) FILTER (breaks.outcome = 'open') AS open_breaks,
        count(*) FILTER (breaks.outcome = 'now uncertain') AS uncertain_breaks
    FROM breaks
    WHERE breaks.own_source IS NULL
    GROUP BY ALL
), closed AS (
    SELECT
        closes.month, closes.number,
        if(closes.state = 'closed' AND NOT closes.has_mapping, 'other mapping', closes.state)
            AS state,
        coalesce(closes.approved_at, closes.closed_at) AS closed_at, closes.changed_records,
        string_split(closes.connections, ',') AS connections
    FROM reconciliation.closes AS closes
), signed AS (
    SELECT
        lists.connection, closed.month, max_by(closed.state, closed.number) AS state,
        max_by(closed.closed_at, closed.number) AS closed_at,
        max_by(closed.changed_records, closed.number) AS changed_records
    FROM (SELECT DISTINCT lists.connection FROM reconciliation.lists AS lists) AS lists
    JOIN closed ON closed.connections IS NULL
        OR list_contains(closed.connections, lists.connection)
    GROUP BY lists.connection, closed.month
), sums AS (
    SELECT
        summary.connection, summary.month, summary.currency,
        coalesce(sum(summary.used_amount), 0) AS used,
        coalesce(sum(summary.billed_amount), 0) AS billed,
        coalesce(sum(summary.credited_amount), 0) AS credited,
        sum(summary.difference) AS difference,
        bool_or(summary.verdict = 'not proven') AS is_doubtful,
        bool_and(summary.verdict = 'balanced') AS has_balance, min(ended.day) AS usage_until
    FROM reconciliation.summary AS summary
    LEFT JOIN ended_usage AS ended ON ended.connection = summary.connection
        AND last_day(summary.month) > ended.day AND last_day(summary.month) < ended.read_on
    GROUP BY summary.connection, summary.month, summary.currency
)
SELECT
    sums.connection, sums.month, sums.currency, sums.used, sums.billed, sums.credited,
    sums.difference, coalesce(found.unbilled, 0) AS unbilled,
    coalesce(found.overbilled, 0) AS overbilled,
    sums.difference + coalesce(found.unbilled, 0) - coalesce(found.overbilled, 0) AS other,
    coalesce(found.open_breaks, 0) AS open_breaks,
    coalesce(found.uncertain_breaks, 0) AS uncertain_breaks, sums.is_doubtful, sums.usage_until,
    sums.has_balance AND unknown.is_unknown IS NULL AS is_balanced,
    coalesce(date_diff('month', sums.month, as_of.as_of::DATE) > 0, true) AS is_over,
    if(date_diff('month', sums.month, as_of.as_of::DATE) = 0, 0, 1) AS place,
    coalesce(signed.state, (
        SELECT 'not known' FROM reconciliation.rules AS rules
        WHERE rules.rule = 'closes' AND NOT rules.evaluated
    )) AS state, signed.closed_at, signed.changed_records
FROM sums
CROSS JOIN as_of
LEFT JOIN found ON found.connection = sums.connection
    AND found.month IS NOT DISTINCT FROM sums.month
    AND found.currency IS NOT DISTINCT FROM sums.currency
LEFT JOIN unknown ON unknown.connection = sums.connection
    AND unknown.month IS NOT DISTINCT FROM sums.month
    AND unknown.currency IS NOT DISTINCT FROM sums.currency
LEFT JOIN signed ON signed.connection = sums.connection AND signed.month = sums.month
ORDER BY sums.month DESC NULLS LAST, sums.connection, sums.currency
