-- Who has the most overdue in each currency, of bills alone.
-- needs: currencies
WITH sums AS (
    SELECT
        receivables.currency, receivables.partner, receivables.connection, receivables.partner_id,
        sum(receivables.open) AS open, count(*) AS bills, max(receivables.days_overdue) AS oldest
    FROM finance.receivables AS receivables
    WHERE receivables.days_overdue > 0 AND (receivables.open IS NULL OR receivables.open > 0)
    GROUP BY ALL
), ranked AS (
    SELECT
        sums.*,
        row_number() OVER (
            PARTITION BY sums.currency
            ORDER BY sums.open DESC NULLS LAST, sums.partner, sums.connection
        ) AS rank,
        count(*) OVER (PARTITION BY sums.currency) AS of_partners
    FROM sums
)
SELECT ranked.*
FROM ranked
JOIN currencies ON currencies.currency IS NOT DISTINCT FROM ranked.currency
WHERE ranked.rank <= 3
ORDER BY currencies.place, ranked.rank
