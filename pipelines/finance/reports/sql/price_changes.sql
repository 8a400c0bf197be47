-- Plans and metrics whose price is not that of the last month before that has a quantity, also where
-- months between have none: of the twelve newest months whose bills are due everywhere. `place` counts
-- these months, the newest first. `others_...` are all other partners of the connection in the same month.
-- Floating point only leaves out what cannot be material: effects are computed in `prices.py`.
-- The largest by materiality come first. `sides` is both where used and billed changed alike.
-- needs: currencies
WITH due AS (
    SELECT flux.month, row_number() OVER (ORDER BY flux.month DESC) - 1 AS place
    FROM reconciliation.flux AS flux
    GROUP BY flux.month
    HAVING bool_and(flux.is_due)
    ORDER BY flux.month DESC
    LIMIT 12
), known AS (
    SELECT
        items.connection, items.side, items.partner, items.currency, items.plan, items.metric,
        items.unit, items.region, items.month, items.quantity, items.amount
    FROM reconciliation.flux_items AS items
    WHERE items.kind = 'usage'
    UNION ALL
    -- The first month has no row of its own.
    SELECT
        items.connection, items.side, items.partner, items.currency, items.plan, items.metric,
        items.unit, items.region, (items.month - INTERVAL 1 MONTH)::DATE AS month,
        items.quantity_before, items.amount_before
    FROM reconciliation.flux_items AS items
    JOIN (
        SELECT items.connection, items.side, min(items.month) AS month
        FROM reconciliation.flux_items AS items
        GROUP BY items.connection, items.side
    ) AS first_months USING (connection, side, month)
    WHERE items.kind = 'usage'
), priced AS (
    SELECT
        known.*, lag(known.month) OVER in_order AS month_before,
        lag(known.quantity) OVER in_order AS quantity_before,
        lag(known.amount) OVER in_order AS amount_before
    FROM known
    WHERE known.quantity <> 0 AND coalesce(known.plan, known.metric) IS NOT NULL
    WINDOW in_order AS (
        PARTITION BY known.connection, known.side, known.partner, known.currency, known.plan,
            known.metric, known.unit, known.region
        ORDER BY known.month
    )
), of_all AS (
    SELECT
        known.connection, known.side, known.currency, known.plan, known.metric, known.unit,
        known.region, known.month, sum(known.quantity) AS quantity, sum(known.amount) AS amount
    FROM known
    WHERE known.quantity <> 0
    GROUP BY ALL
), changed AS (
    SELECT
        priced.*, due.place, coalesce(material.amount, 0) AS material,
        abs(priced.amount::DOUBLE
            - priced.amount_before::DOUBLE * priced.quantity / priced.quantity_before) AS about,
        1e-12 * greatest(abs(priced.amount::DOUBLE), abs(priced.amount_before::DOUBLE)) AS inexact
    FROM priced
    JOIN due USING (month)
    LEFT JOIN reconciliation.materiality AS material ON material.currency = priced.currency
    WHERE priced.quantity_before <> 0
)
SELECT
    changed.* EXCLUDE (about, inexact), partners.name,
    of_all.quantity - changed.quantity AS others_quantity,
    of_all.amount - changed.amount AS others_amount,
    if(count(*) OVER (
        PARTITION BY changed.month, changed.currency, changed.connection, changed.partner,
            changed.plan, changed.metric, changed.unit, changed.region, changed.month_before,
            changed.quantity_before, changed.quantity, changed.amount_before, changed.amount
    ) > 1, 'both', changed.side) AS sides
FROM changed
JOIN currencies ON currencies.currency IS NOT DISTINCT FROM changed.currency
JOIN of_all ON of_all.connection = changed.connection AND of_all.side = changed.side
    AND of_all.month = changed.month
    AND of_all.currency IS NOT DISTINCT FROM changed.currency
    AND of_all.plan IS NOT DISTINCT FROM changed.plan
    AND of_all.metric IS NOT DISTINCT FROM changed.metric
    AND of_all.unit IS NOT DISTINCT FROM changed.unit
    AND of_all.region IS NOT DISTINCT FROM changed.region
LEFT JOIN reconciliation.partners AS partners
    ON partners.connection = changed.connection AND partners.partner = changed.partner
WHERE changed.about + changed.inexact >= 0.999 * changed.material
    AND (changed.about > 0 OR changed.inexact > 0)
ORDER BY
    changed.material = 0 DESC, changed.about / changed.material DESC, changed.about DESC,
    changed.month DESC, currencies.place, changed.connection, changed.partner, changed.plan,
    changed.metric, changed.unit, changed.region, changed.side DESC
