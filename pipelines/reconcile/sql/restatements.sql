-- question: Which records count with another amount or quantity than before, or elsewhere?
-- needs: usage.amount billing.amount
-- remedy: Nothing, where both sides changed alike. Otherwise see the breaks of the partner.
-- A record that moved to another partner, month or currency has two rows: what is taken away there,
-- and what is added here. One that is withdrawn, or is back, has one. Amounts of two currencies are never subtracted.
WITH counted AS NOT MATERIALIZED (
    SELECT
        versions.connection, versions.side, versions._key, versions.id, versions.partner,
        versions.month, versions.currency, versions.apart, versions._valid_from,
        versions._valid_to, versions._end_reason,
        if(versions.apart <> 'credit note', NULL, versions.amount) AS amount,
        if(versions.apart <> 'credit note', NULL, versions.quantity) AS quantity
    FROM versions
), ended AS (
    SELECT DISTINCT versions.connection, versions.side, versions._key
    FROM versions
    WHERE versions._valid_to IS NOT NULL
), of_ended AS (
    SELECT
        counted.*, {'id': counted.id, 'partner': counted.partner, 'month': counted.month,
            'currency': counted.currency, 'amount': counted.amount,
            'quantity': counted.quantity} AS said,
        lag(said) OVER one AS said_before, lag(counted._valid_to) OVER one AS ended_before
    FROM counted
    SEMI JOIN ended ON ended.connection = counted.connection AND ended.side = counted.side
        AND ended._key = counted._key
    WINDOW one AS (
        PARTITION BY counted.connection, counted.side, counted._key ORDER BY counted._valid_from
    )
), steps AS (  -- each version that began after another one, and each that was withdrawn
    SELECT
        of_ended.*, of_ended._valid_from AS changed_at, of_ended.said AS now,
        if(of_ended.ended_before = of_ended._valid_from, of_ended.said_before, NULL) AS before
    FROM of_ended
    WHERE of_ended.ended_before IS NOT NULL
    UNION ALL BY NAME
    SELECT of_ended.*, of_ended._valid_to AS changed_at, of_ended.said AS before
    FROM of_ended
    -- Without a primary key, a record with another content is another one: its change is not seen.
    WHERE of_ended._end_reason = 'deleted'
        AND NOT regexp_full_match(of_ended._key, '[0-9a-f]{16}#[0-9]+')
), pairs AS (
    SELECT
        steps.connection, steps.side, steps.changed_at, steps.apart, steps.before, steps.now,
        row(before.id, before.partner, before.month, before.currency)
            IS DISTINCT FROM row(now.id, now.partner, now.month, now.currency) AS is_moved
    FROM steps
), parts AS (
    SELECT
        pairs.* EXCLUDE (before, now), pairs.before AS place,
        pairs.before.amount AS amount_before, pairs.before.quantity AS quantity_before,
        if(pairs.is_moved, NULL, pairs.now.amount) AS amount_after,
        if(pairs.is_moved, NULL, pairs.now.quantity) AS quantity_after
    FROM pairs
    UNION ALL BY NAME
    SELECT
        pairs.* EXCLUDE (before, now), pairs.now AS place,
        pairs.now.amount AS amount_after, pairs.now.quantity AS quantity_after
    FROM pairs
    WHERE pairs.is_moved
)
SELECT
    parts.connection, parts.side, parts.place.id, parts.place.partner, parts.place.month,
    parts.place.currency, parts.amount_before, parts.amount_after,
    coalesce(parts.amount_after, 0) - coalesce(parts.amount_before, 0) AS difference,
    parts.quantity_before, parts.quantity_after, parts.apart, parts.changed_at,
    (parts.place.month + INTERVAL 1 MONTH)::DATE <= parts.changed_at::DATE AS after_month
FROM parts
WHERE parts.amount_before IS DISTINCT FROM parts.amount_after
    OR parts.quantity_before IS DISTINCT FROM parts.quantity_after
ORDER BY
    parts.changed_at DESC, parts.connection, parts.side, parts.place.id,
    parts.amount_before NULLS LAST
