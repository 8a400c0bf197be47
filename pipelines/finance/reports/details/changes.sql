-- Why a month of each partner is not like the one before, by side. Parts that are 0 are left out.
-- What is not known is said: a cell without text would look like 0.
SELECT
    flux.connection, flux.name AS partner,
    flux.partner AS partner_id, strftime(flux.month, '%Y-%m') AS month, flux.currency,
    if(flux.side = 'usage', 'used', 'billed') AS side, exact(flux.amount_before) AS before,
    exact(flux.amount) AS now, exact(flux.difference) AS difference,
    if(flux.late IS NULL, 'not known', nullif(exact(flux.late), '0')) AS late,
    if(flux.restated IS NULL, 'not known', nullif(exact(flux.restated), '0')) AS restated,
    nullif(exact(flux.credits), '0') AS credits, nullif(exact(flux.fees), '0') AS fees,
    nullif(exact(flux.new), '0') AS new, nullif(exact(flux.lost), '0') AS lost,
    nullif(exact(flux.volume), '0') AS volume, nullif(exact(flux.price), '0') AS price,
    nullif(exact(flux.unexplained), '0') AS unexplained
FROM listed_changes AS flux
ORDER BY flux.place
