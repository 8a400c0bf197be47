-- Months of a partner without usage or bills. `total` counts all rows.
SELECT
    gaps.side, gaps.connection, gaps.partner, names.partner AS name, gaps.first_month,
    gaps.last_month, gaps.months, count(*) OVER () AS total
FROM reconciliation.gaps AS gaps
LEFT JOIN finance.names AS names
    ON names.connection = gaps.connection AND names.partner_id = gaps.partner
ORDER BY gaps.last_month DESC, gaps.months DESC, gaps.connection, gaps.partner, gaps.side
LIMIT 6
