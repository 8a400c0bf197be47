-- question: Which records changed their amount, quantity, partner, month or currency?
-- needs: movements usage.amount billing.amount
-- remedy: Nothing, if usage and bill changed alike. Otherwise see the breaks of the partner.
-- A record that moved to another partner, month or currency has two rows: what is taken away there,
-- and what is added here. One that is withdrawn, or is back, has one. Amounts of two currencies are
-- never subtracted.
WITH counted AS (
    SELECT
        moves.connection, moves.side, moves._key, moves.id, moves.partner, moves.month,
        moves.currency, moves.moved_at, moves.is_end,
        if(moves.apart <> 'credit note', NULL, moves.amount) AS amount,
        if(moves.apart <> 'credit note', NULL, moves.quantity) AS quantity,
        -- A bill that moved and became void says so in both rows.
        arg_min_null(moves.apart, moves.is_end) OVER (
            PARTITION BY moves.connection, moves.side, moves._key, moves.moved_at
        ) AS apart
    FROM movements AS moves
    -- Without a primary key, a record with another content is another one: its change is not seen.
    WHERE moves.is_change AND NOT (moves.is_end AND moves._end_reason = 'deleted'
        AND regexp_full_match(moves._key, '[0-9a-f]{16}#[0-9]+'))
)
SELECT
    counted.connection, counted.side, counted.id, counted.partner, counted.month,
    counted.currency,
    any_value(counted.amount) FILTER (counted.is_end) AS amount_before,
    any_value(counted.amount) FILTER (NOT counted.is_end) AS amount_after,
    coalesce(amount_after, 0) - coalesce(amount_before, 0) AS difference,
    any_value(counted.quantity) FILTER (counted.is_end) AS quantity_before,
    any_value(counted.quantity) FILTER (NOT counted.is_end) AS quantity_after,
    counted.apart, counted.moved_at AS changed_at,
    (counted.month + INTERVAL 1 MONTH)::DATE <= counted.moved_at::DATE AS after_month
FROM counted
GROUP BY
    counted.connection, counted.side, counted._key, counted.id, counted.partner, counted.month,
    counted.currency, counted.apart, counted.moved_at
HAVING amount_before IS DISTINCT FROM amount_after
    OR quantity_before IS DISTINCT FROM quantity_after
ORDER BY
    counted.moved_at DESC, counted.connection, counted.side, counted.id,
    amount_before NULLS LAST
