-- Why a month of each partner is not like the one before, by side: of the twelve newest months whose
-- bills are due everywhere. The newest months come first, and of these the largest changes. Parts that
-- are 0 are left out.
WITH due AS (
    SELECT flux.month
    FROM reconciliation.flux AS flux
    GROUP BY flux.month
    HAVING bool_and(flux.is_due)
    ORDER BY flux.month DESC
    LIMIT 12
)
SELECT
    flux.connection, coalesce(partners.name, flux.partner, 'no partner') AS partner,
    flux.partner AS partner_id, strftime(flux.month, '%Y-%m') AS month, flux.currency,
    if(flux.side = 'usage', 'used', 'billed') AS side, exact(flux.amount_before) AS before,
    exact(flux.amount) AS now, exact(flux.difference) AS difference,
    nullif(exact(flux.late), '0') AS late, nullif(exact(flux.restated), '0') AS restated,
    nullif(exact(flux.credits), '0') AS credits, nullif(exact(flux.fees), '0') AS fees,
    nullif(exact(flux.new), '0') AS new, nullif(exact(flux.lost), '0') AS lost,
    nullif(exact(flux.volume), '0') AS volume, nullif(exact(flux.price), '0') AS price,
    nullif(exact(flux.unexplained), '0') AS unexplained
FROM reconciliation.flux AS flux
SEMI JOIN due USING (month)
LEFT JOIN reconciliation.partners AS partners USING (connection, partner)
LEFT JOIN currencies ON currencies.currency IS NOT DISTINCT FROM flux.currency
WHERE flux.difference <> 0 OR flux.volume <> 0 OR flux.price <> 0
ORDER BY
    flux.month DESC, currencies.place, flux.currency, flux.side DESC, abs(flux.difference) DESC,
    flux.connection, flux.partner
