-- question: Which partners have a month without usage or bills between two months with some?
-- needs: month_facts usage.partner usage.period billing.partner billing.period
-- remedy: Ask the service about a gap that the partner's business does not explain.
WITH active AS (
    SELECT 'usage' AS side, facts.connection, facts.partner, facts.month
    FROM reconciliation.month_facts AS facts
    WHERE facts.used_rows > 0
    UNION
    SELECT 'billing', facts.connection, facts.partner, facts.month
    FROM reconciliation.month_facts AS facts
    WHERE facts.bills > 0
), ordered AS (
    SELECT
        active.*,
        lag(active.month) OVER (
            PARTITION BY active.connection, active.side, active.partner ORDER BY active.month
        ) AS before
    FROM active
    WHERE active.partner IS NOT NULL AND active.month IS NOT NULL
)
SELECT
    ordered.connection, ordered.side, ordered.partner,
    (ordered.before + INTERVAL 1 MONTH)::DATE AS first_month,
    (ordered.month - INTERVAL 1 MONTH)::DATE AS last_month,
    date_diff('month', ordered.before, ordered.month) - 1 AS months
FROM ordered
WHERE date_diff('month', ordered.before, ordered.month) > 1
ORDER BY ALL
