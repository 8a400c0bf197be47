-- Why a month of each partner is not like the one before, by side: of the twelve newest months whose
-- bills are due everywhere. The newest months come first, and of these the sums of all partners (without
-- a name), then the largest changes of each currency and side: what has room is of all of them.
-- `changes` and `items` read this table.
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
        sum(flux.amount) AS amount, sum(flux.difference) AS difference,
        if(count(flux.late) = count(*), sum(flux.late), NULL) AS late,
        if(count(flux.restated) = count(*), sum(flux.restated), NULL) AS restated,
        sum(flux.credits) AS credits, sum(flux.fees) AS fees, sum(flux.new) AS new, sum(flux.lost) AS lost, sum(flux.volume) AS volume,
        sum(flux.price) AS price, sum(flux.unexplained) AS unexplained
    FROM due_flux AS flux
    GROUP BY flux.month, flux.currency, flux.side
), of_partners AS (
    SELECT due_flux.*, coalesce(partners.name, due_flux.partner, 'no partner') AS name
    FROM due_flux
    LEFT JOIN reconciliation.partners AS partners USING (connection, partner)
), ranked AS (
    SELECT
        flux.*,
        row_number() OVER (
            PARTITION BY flux.month, flux.currency, flux.side
            ORDER BY flux.name IS NOT NULL, abs(flux.difference) DESC, flux.connection, flux.partner
        ) AS rank
    FROM (FROM of_partners UNION ALL BY NAME FROM of_all) AS flux
    -- What cancels is a change, too: one partner that is new, and one that ended.
    WHERE flux.difference <> 0 OR flux.late <> 0 OR flux.restated <> 0 OR flux.credits <> 0
        OR flux.fees <> 0 OR flux.new <> 0 OR flux.lost <> 0 OR flux.volume <> 0
        OR flux.price <> 0 OR flux.unexplained <> 0
)
SELECT
    ranked.*,
    row_number() OVER (
        ORDER BY ranked.month DESC, ranked.rank, currencies.place, ranked.currency, ranked.side DESC
    ) - 1 AS place
FROM ranked
LEFT JOIN currencies ON currencies.currency IS NOT DISTINCT FROM ranked.currency
