-- With which partners breaks are open: the three of each currency with the largest amounts, whatever
-- their signs, then all others in one row. The amounts of a currency add up to those of its open breaks of used and billed:
-- `less` are breaks below zero, `more` those above it.
-- needs: open_breaks
WITH ranked AS (
    SELECT
        breaks.connection, breaks.partner, breaks.name, breaks.currency,
        coalesce(sum(breaks.difference), 0) AS difference,
        sum(breaks.difference) FILTER (breaks.difference < 0) AS less,
        sum(breaks.difference) FILTER (breaks.difference > 0) AS more,
        CASE WHEN count(DISTINCT breaks.other_partner) = 1
            AND count(breaks.other_partner) = count(*)
            THEN min(breaks.other_partner) END AS other_partner,  -- of all breaks, or of none
        least(4, row_number() OVER (
            PARTITION BY breaks.currency
            ORDER BY coalesce(sum(abs(breaks.difference)), 0) DESC, breaks.connection,
                breaks.partner
        )) AS rank
    FROM open_breaks AS breaks
    WHERE breaks.own_source IS NULL
    GROUP BY breaks.connection, breaks.partner, breaks.name, breaks.currency
)
SELECT
    ranked.currency, ranked.rank, count(*) AS partners, sum(ranked.difference) AS difference,
    sum(ranked.less) AS less, sum(ranked.more) AS more,
    min(ranked.connection) AS connection, min(ranked.partner) AS partner, min(ranked.name) AS name,
    min(ranked.other_partner) AS other_partner
FROM ranked
GROUP BY ranked.currency, ranked.rank
ORDER BY ranked.currency, ranked.rank
