-- Plans and metrics whose price is not that of the month before, of the month of the data and the two
-- before it. A price is the amount divided by the quantity, both as they are now; `effect` is part price
-- of the change. The largest by materiality come first. `sides` is both where used and billed changed alike.
-- needs: places currencies
WITH changed AS (
    SELECT
        items.month, items.currency, items.side, items.connection, items.partner, items.plan,
        items.metric, items.unit, items.region, items.quantity_before, items.quantity,
        items.amount_before, items.amount, items.price AS effect,
        count(*) OVER (
            PARTITION BY items.month, items.currency, items.connection, items.partner, items.plan,
                items.metric, items.unit, items.region, items.quantity_before, items.quantity,
                items.amount_before, items.amount, items.price
        ) > 1 AS is_alike
    FROM reconciliation.flux_items AS items
    JOIN places ON places.month = items.month AND places.place < 3
    WHERE items.is_due AND items.kind = 'usage' AND items.price <> 0
        AND items.quantity <> 0 AND items.quantity_before <> 0
        AND coalesce(items.plan, items.metric) IS NOT NULL
)
SELECT
    changed.* EXCLUDE (is_alike), if(changed.is_alike, 'both', changed.side) AS sides,
    partners.name, abs(changed.effect) >= coalesce(material.amount, 0) AS is_material
FROM changed
JOIN currencies ON currencies.currency IS NOT DISTINCT FROM changed.currency
LEFT JOIN reconciliation.materiality AS material ON material.currency = changed.currency
LEFT JOIN reconciliation.partners AS partners USING (connection, partner)
ORDER BY
    is_material DESC, abs(changed.effect)::DOUBLE / material.amount DESC NULLS FIRST,
    changed.month DESC, currencies.place, changed.connection, changed.partner, changed.plan,
    changed.metric, changed.unit, changed.region, changed.side DESC
