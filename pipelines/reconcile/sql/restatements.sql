-- question: Which records count with another amount or quantity than before, or elsewhere?
-- needs: usage.amount billing.amount
-- remedy: Nothing, where both sides changed alike. Otherwise see the breaks of the partner.
-- A record that moved to another partner, month or currency has two rows: what is taken away there,
-- and what is added here. Amounts of two currencies are never subtracted.
WITH parts AS (
    SELECT before.*, before._valid_to AS changed_at, true AS is_before
    FROM versions AS before
    WHERE before._end_reason = 'changed'
    UNION ALL BY NAME
    SELECT now.*, now._valid_from AS changed_at, false AS is_before
    FROM versions AS now
    SEMI JOIN versions AS before ON before.connection = now.connection AND before.side = now.side
        AND before._key = now._key AND before._valid_to = now._valid_from
        AND before._end_reason = 'changed'
), counted AS (
    SELECT parts.*, parts.apart IS NULL OR parts.apart = 'credit note' AS counts
    FROM parts
)
SELECT
    counted.connection, counted.side, counted.id, counted.partner, counted.month,
    counted.currency,
    sum(counted.amount) FILTER (counted.is_before AND counted.counts) AS amount_before,
    sum(counted.amount) FILTER (NOT counted.is_before AND counted.counts) AS amount_after,
    coalesce(amount_after, 0) - coalesce(amount_before, 0) AS difference,
    sum(counted.quantity) FILTER (counted.is_before AND counted.counts) AS quantity_before,
    sum(counted.quantity) FILTER (NOT counted.is_before AND counted.counts) AS quantity_after,
    max(max(counted.apart) FILTER (NOT counted.is_before)) OVER record AS apart,
    counted.changed_at,
    (counted.month + INTERVAL 1 MONTH)::DATE <= counted.changed_at::DATE AS after_month
FROM counted
GROUP BY
    counted.connection, counted.side, counted._key, counted.id, counted.partner, counted.month,
    counted.currency, counted.changed_at
WINDOW record AS (
    PARTITION BY counted.connection, counted.side, counted._key, counted.changed_at
)
QUALIFY amount_before IS DISTINCT FROM amount_after
    OR quantity_before IS DISTINCT FROM quantity_after
ORDER BY
    counted.changed_at DESC, counted.connection, counted.side, counted.id, amount_before NULLS LAST
