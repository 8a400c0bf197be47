-- Why a month of each partner is not like the one before, by side: of the twelve newest months whose
-- bills are due everywhere. The newest months come first, and of these the sum of all partners, then the
-- largest changes. Parts that are 0 are left out.
WITH due AS (
    SELECT flux.month
    FROM reconciliation.flux AS flux
    GROUP BY flux.month
    HAVING bool_and(flux.is_due)
    ORDER BY flux.month DESC
    LIMIT 12
), due_flux AS (
    SELECT flux.*
    FROM reconciliation.flux AS flux
    SEMI JOIN due USING (month)
), of_all AS (
    SELECT
        flux.month, flux.currency, flux.side, sum(flux.amount_before) AS amount_before,
        sum(flux.amount) AS amount, sum(flux.difference) AS difference, sum(flux.late) AS late,
        sum(flux.restated) AS restated, sum(flux.credits) AS credits, sum(flux.fees) AS fees,
        sum(flux.new) AS new, sum(flux.lost) AS lost, sum(flux.volume) AS volume,
        sum(flux.price) AS price, sum(flux.unexplained) AS unexplained
    FROM due_flux AS flux
    GROUP BY flux.month, flux.currency, flux.side
), of_partners AS (
    SELECT due_flux.*, coalesce(partners.name, due_flux.partner, 'no partner') AS name
    FROM due_flux
    LEFT JOIN reconciliation.partners AS partners USING (connection, partner)
)
SELECT
    flux.connection, flux.name AS partner,
    flux.partner AS partner_id, strftime(flux.month, '%Y-%m') AS month, flux.currency,
    if(flux.side = 'usage', 'used', 'billed') AS side, exact(flux.amount_before) AS before,
    exact(flux.amount) AS now, exact(flux.difference) AS difference,
    nullif(exact(flux.late), '0') AS late, nullif(exact(flux.restated), '0') AS restated,
    nullif(exact(flux.credits), '0') AS credits, nullif(exact(flux.fees), '0') AS fees,
    nullif(exact(flux.new), '0') AS new, nullif(exact(flux.lost), '0') AS lost,
    nullif(exact(flux.volume), '0') AS volume, nullif(exact(flux.price), '0') AS price,
    nullif(exact(flux.unexplained), '0') AS unexplained
FROM (FROM of_partners UNION ALL BY NAME FROM of_all) AS flux
LEFT JOIN currencies ON currencies.currency IS NOT DISTINCT FROM flux.currency
WHERE flux.difference <> 0 OR flux.volume <> 0 OR flux.price <> 0
ORDER BY
    flux.month DESC, currencies.place, flux.currency, flux.side DESC, flux.name IS NOT NULL,
    abs(flux.difference) DESC, flux.connection, flux.partner
