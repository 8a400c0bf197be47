-- Totals of own books beside those of the service: at most 24 of each source, those with a difference
-- first, then the newest. `total` counts all.
-- needs: open_breaks
WITH open AS (
    SELECT breaks.own_source, breaks.month, breaks.currency, count(*) AS breaks
    FROM open_breaks AS breaks
    WHERE breaks.own_source IS NOT NULL
    GROUP BY breaks.own_source, breaks.month, breaks.currency
), ranked AS (
    SELECT
        totals.*, coalesce(open.breaks, 0) AS open_breaks,
        count(*) OVER (PARTITION BY totals.source) AS total,
        row_number() OVER (
            PARTITION BY totals.source
            ORDER BY totals.difference <> 0 DESC, totals.month DESC NULLS LAST, totals.currency
        ) AS place
    FROM reconciliation.own_totals AS totals
    LEFT JOIN open ON open.own_source = totals.source
        AND open.month IS NOT DISTINCT FROM totals.month
        AND open.currency IS NOT DISTINCT FROM totals.currency
)
-- Where a side has no row, its sum is 0; where it has some without an amount, it is not known.
SELECT
    ranked.* EXCLUDE (place) REPLACE (
        if(ranked.own_rows = 0, 0, ranked.own_amount) AS own_amount,
        if(ranked.service_rows = 0, 0, ranked.service_amount) AS service_amount
    )
FROM ranked
WHERE ranked.place <= 24
ORDER BY ranked.source, ranked.month DESC NULLS LAST, ranked.currency
