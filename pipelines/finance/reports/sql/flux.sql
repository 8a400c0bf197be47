-- Why the newest month that is complete everywhere is not like the one before, by partner. The largest
-- changes of each currency and side come first, also those that cancel.
-- needs: currencies
WITH newest AS (
    SELECT max(months.month) AS month
    FROM (
        SELECT flux.month
        FROM reconciliation.flux AS flux
        GROUP BY flux.month
        HAVING bool_and(flux.is_due)
    ) AS months
)
SELECT flux.*, partners.name
FROM reconciliation.flux AS flux
SEMI JOIN newest USING (month)
LEFT JOIN reconciliation.partners AS partners USING (connection, partner)
LEFT JOIN currencies ON currencies.currency IS NOT DISTINCT FROM flux.currency
ORDER BY
    currencies.place, flux.currency, flux.side DESC,
    list_max(list_transform(
        [flux.difference::DOUBLE, flux.late, flux.restated, flux.credits, flux.fees, flux.volume,
            flux.price, flux.unexplained],
        lambda part: abs(part)
    )) DESC,
    flux.connection, flux.partner
