-- With which partners breaks are open: the three of each currency with the largest sum, then all
-- others in one row. The amounts of a currency add up to those of its open breaks.
WITH open AS (
    SELECT
        breaks.connection, breaks.partner, breaks.partner_name AS name, breaks.currency,
        coalesce(sum(breaks.difference), 0) AS difference,
        CASE WHEN count(DISTINCT others.partner) = 1 AND count(others.partner) = count(*)
            THEN min(others.partner) END AS other_partner  -- of all breaks, or of none
    FROM reconciliation.breaks AS breaks
    LEFT JOIN counterparts AS others USING (break_id)
    WHERE breaks.state <> 'resolved' AND breaks.uncertain IS NULL
    GROUP BY breaks.connection, breaks.partner, breaks.partner_name, breaks.currency
), ranked AS (
    SELECT
        open.*,
        least(4, row_number() OVER (
            PARTITION BY open.currency
            ORDER BY abs(open.difference) DESC, open.connection, open.partner
        )) AS rank
    FROM open
)
SELECT
    ranked.currency, ranked.rank, count(*) AS partners, sum(ranked.difference) AS difference,
    sum(ranked.difference) FILTER (ranked.difference < 0) AS less,
    sum(ranked.difference) FILTER (ranked.difference > 0) AS more,
    min(ranked.connection) AS connection, min(ranked.partner) AS partner, min(ranked.name) AS name,
    min(ranked.other_partner) AS other_partner
FROM ranked
GROUP BY ranked.currency, ranked.rank
ORDER BY ranked.currency, ranked.rank
