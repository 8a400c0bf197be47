-- Months of a partner without usage or bills. `total` counts all rows.
SELECT
    gaps.side, gaps.connection, gaps.partner, partners.name, gaps.first_month, gaps.last_month,
    gaps.months, count(*) OVER () AS total
FROM reconciliation.gaps AS gaps
LEFT JOIN (
    SELECT partners.connection, partners.partner, min(partners.name) AS name
    FROM reconciliation.partners AS partners
    GROUP BY partners.connection, partners.partner
) AS partners ON partners.connection = gaps.connection AND partners.partner = gaps.partner
ORDER BY gaps.last_month DESC, gaps.months DESC, gaps.connection, gaps.partner, gaps.side
LIMIT 3
