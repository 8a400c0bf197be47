-- Why each of the three newest months whose bills are due everywhere is not like the one before, by
-- partner. The newest months come first, of these the largest changes of each currency and side, also
-- those that cancel. `new_items` is the part of `volume` of plans and metrics without a quantity in the
-- month before: a new price is in it, too.
-- needs: currencies
WITH due AS (
    SELECT flux.month
    FROM reconciliation.flux AS flux
    GROUP BY flux.month
    HAVING bool_and(flux.is_due)
    ORDER BY flux.month DESC
    LIMIT 3
), new_items AS (
    SELECT
        items.month, items.connection, items.side, items.partner, items.currency,
        sum(items.volume) AS new_items
    FROM reconciliation.flux_items AS items
    SEMI JOIN due USING (month)
    WHERE items.kind = 'usage' AND items.quantity_before = 0 AND items.volume <> 0
    GROUP BY ALL
)
SELECT flux.*, partners.name, coalesce(new_items.new_items, 0) AS new_items
FROM reconciliation.flux AS flux
SEMI JOIN due USING (month)
LEFT JOIN new_items ON new_items.month = flux.month AND new_items.side = flux.side
    AND new_items.connection = flux.connection
    AND new_items.partner IS NOT DISTINCT FROM flux.partner
    AND new_items.currency IS NOT DISTINCT FROM flux.currency
LEFT JOIN reconciliation.partners AS partners
    ON partners.connection = flux.connection AND partners.partner IS NOT DISTINCT FROM flux.partner
LEFT JOIN currencies ON currencies.currency IS NOT DISTINCT FROM flux.currency
ORDER BY
    flux.month DESC, currencies.place, flux.currency, flux.side DESC,
    list_max(list_transform(
        [flux.difference::DOUBLE, flux.late, flux.restated, flux.credits, flux.fees, flux.volume,
            flux.price, flux.unexplained],
        lambda part: abs(part)
    )) DESC,
    flux.connection, flux.partner
