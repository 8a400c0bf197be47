-- Without months whose bills are not due. `billed` includes credit notes; `total` counts all rows.
-- The largest of each currency come first: amounts of two currencies cannot be compared.
WITH partners AS (
    SELECT
        summary.connection, summary.partner, summary.currency,
        any_value(summary.partner_name) AS name,
        coalesce(sum(summary.used_amount), 0) AS used,
        coalesce(sum(summary.billed_amount), 0) + coalesce(sum(summary.credited_amount), 0)
            AS billed,
        sum(summary.difference) AS difference,
        sum(summary.open_breaks)::BIGINT AS open_breaks
    FROM reconciliation.summary AS summary
    WHERE summary.verdict <> 'tentative'
    GROUP BY summary.connection, summary.partner, summary.currency
    HAVING sum(summary.difference) <> 0
), ranked AS (
    SELECT
        partners.*, currencies.place,
        count(*) OVER () AS total,
        row_number() OVER (
            PARTITION BY partners.currency
            ORDER BY abs(partners.difference) DESC, partners.connection, partners.partner
        ) AS rank
    FROM partners
    JOIN currencies ON currencies.currency IS NOT DISTINCT FROM partners.currency
    ORDER BY rank, currencies.place
    LIMIT 8
)
SELECT ranked.* EXCLUDE (place, rank)
FROM ranked
ORDER BY ranked.place, ranked.rank
