-- Months with a difference that no chart shows: the worst one of each currency with open breaks, and
-- others up to six rows. `total` counts all rows.
-- needs: currencies months trend
WITH ranked AS (
    SELECT
        months.*, currencies.place, currencies.open_breaks > 0 AS is_wrong,
        row_number() OVER (
            PARTITION BY months.currency
            ORDER BY abs(months.difference) DESC NULLS LAST, months.month DESC NULLS LAST
        ) AS rank
    FROM months
    JOIN currencies ON currencies.currency IS NOT DISTINCT FROM months.currency
    ANTI JOIN trend
        ON trend.month = months.month AND trend.currency IS NOT DISTINCT FROM months.currency
    WHERE months.difference IS DISTINCT FROM 0 OR months.open_breaks > 0
)
SELECT ranked.* EXCLUDE (place, is_wrong, rank), count(*) OVER () AS total
FROM ranked
QUALIFY row_number() OVER (ORDER BY ranked.rank, ranked.place) <= 6
    OR (ranked.rank = 1 AND ranked.is_wrong)
ORDER BY ranked.place, ranked.month DESC NULLS LAST
