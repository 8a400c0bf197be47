-- question: Which records count with another amount or quantity than before, or elsewhere?
-- needs: usage.amount billing.amount
-- remedy: Nothing, where both sides changed alike. Otherwise see the breaks of the partner.
-- A record that moved to another partner, month or currency has two rows: what is taken away there,
-- and what is added here. Amounts of two currencies are never subtracted.
WITH counted AS NOT MATERIALIZED (
    SELECT
        versions.connection, versions.side, versions._key, versions.id, versions.partner,
        versions.month, versions.currency, versions.apart, versions._valid_from,
        versions._valid_to, versions._end_reason,
        if(versions.apart <> 'credit note', NULL, versions.amount) AS amount,
        if(versions.apart <> 'credit note', NULL, versions.quantity) AS quantity
    FROM versions
), pairs AS (
    SELECT
        old.connection, old.side, old._valid_to AS changed_at, new.apart,
        row(old.id, old.partner, old.month, old.currency)
            IS DISTINCT FROM row(new.id, new.partner, new.month, new.currency) AS is_moved,
        {'id': old.id, 'partner': old.partner, 'month': old.month, 'currency': old.currency,
            'amount': old.amount, 'quantity': old.quantity} AS before,
        {'id': new.id, 'partner': new.partner, 'month': new.month, 'currency': new.currency,
            'amount': new.amount, 'quantity': new.quantity} AS now
    FROM counted AS old
    JOIN counted AS new ON new.connection = old.connection AND new.side = old.side
        AND new._key = old._key AND new._valid_from = old._valid_to
    WHERE old._end_reason = 'changed' AND (is_moved OR old.amount IS DISTINCT FROM new.amount
        OR old.quantity IS DISTINCT FROM new.quantity)
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
