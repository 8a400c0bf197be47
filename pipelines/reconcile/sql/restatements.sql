-- question: Which records count with another amount or quantity than before, or elsewhere?
-- needs: first_read usage.amount billing.amount
-- remedy: Nothing, where both sides changed alike. Otherwise see the breaks of the partner.
-- A record that moved to another partner, month or currency has two rows: what is taken away there,
-- and what is added here. One that is withdrawn, or is back, has one. Amounts of two currencies are
-- never subtracted.
WITH counted AS NOT MATERIALIZED (
    SELECT
        versions.connection, versions.side, versions._key, versions.id, versions.partner,
        versions.month, versions.currency, versions.apart, versions._valid_from,
        versions._valid_to, versions._end_reason, first_read.time AS first_read,
        if(versions.apart <> 'credit note', NULL, versions.amount) AS amount,
        if(versions.apart <> 'credit note', NULL, versions.quantity) AS quantity
    FROM versions
    JOIN first_read
        ON first_read.connection = versions.connection AND first_read.side = versions.side
        AND first_read._key = versions._key
), parts AS (  -- a version is taken away when it ends, and added when it begins after another one
    SELECT
        counted.*, counted._valid_to AS changed_at, counted.amount AS old_amount,
        counted.quantity AS old_quantity, false AS is_new
    FROM counted
    -- Without a primary key, a record with another content is another one: its change is not seen.
    WHERE counted._end_reason = 'changed' OR (counted._end_reason = 'deleted'
        AND NOT regexp_full_match(counted._key, '[0-9a-f]{16}#[0-9]+'))
    UNION ALL BY NAME
    SELECT
        counted.*, counted._valid_from AS changed_at, counted.amount AS new_amount,
        counted.quantity AS new_quantity, true AS is_new
    FROM counted
    WHERE counted._valid_from > counted.first_read
), explained AS (  -- a bill that moved and became void says so in both rows
    SELECT
        parts.* REPLACE (arg_max_null(parts.apart, parts.is_new) OVER (
            PARTITION BY parts.connection, parts.side, parts._key, parts.changed_at) AS apart)
    FROM parts
)
SELECT
    parts.connection, parts.side, parts.id, parts.partner, parts.month, parts.currency,
    any_value(parts.old_amount) AS amount_before, any_value(parts.new_amount) AS amount_after,
    coalesce(amount_after, 0) - coalesce(amount_before, 0) AS difference,
    any_value(parts.old_quantity) AS quantity_before,
    any_value(parts.new_quantity) AS quantity_after,
    parts.apart, parts.changed_at,
    (parts.month + INTERVAL 1 MONTH)::DATE <= parts.changed_at::DATE AS after_month
FROM explained AS parts
GROUP BY
    parts.connection, parts.side, parts._key, parts.id, parts.partner, parts.month,
    parts.currency, parts.apart, parts.changed_at
HAVING amount_before IS DISTINCT FROM amount_after
    OR quantity_before IS DISTINCT FROM quantity_after
ORDER BY
    parts.changed_at DESC, parts.connection, parts.side, parts.id, amount_before NULLS LAST
