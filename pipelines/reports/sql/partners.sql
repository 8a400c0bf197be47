-- Without months whose bills are not due. `billed` includes credit notes, `cause` is that of the
-- month with the largest difference that has one. A row without a `rank` stands for so many
-- `partners` that are not shown.
-- The largest of each currency come first: amounts of two currencies cannot be compared.
WITH partners AS (
    SELECT
        months.connection, months.partner_id AS partner, months.currency,
        nullif(any_value(months.partner), months.partner_id) AS name,
        sum(months.used) AS used,
        sum(months.billed) + sum(months.credited) AS billed,
        sum(months.difference) AS difference,
        arg_max(months.cause, abs(months.difference)) AS cause,
        sum(months.open_breaks)::BIGINT AS open_breaks
    FROM finance.partner_months AS months
    WHERE months.verdict <> 'tentative'
    GROUP BY months.connection, months.partner_id, months.currency
    HAVING sum(months.difference) <> 0
), ranked AS (
    SELECT
        partners.*, currencies.place,
        row_number() OVER (
            PARTITION BY partners.currency
            ORDER BY abs(partners.difference) DESC, partners.connection, partners.partner
        ) AS rank
    FROM partners
    JOIN currencies ON currencies.currency IS NOT DISTINCT FROM partners.currency
), shown AS (
    SELECT ranked.*
    FROM ranked
    ORDER BY ranked.rank, ranked.place
    LIMIT 8
)
SELECT shown.*, 1 AS partners
FROM shown
UNION ALL BY NAME
SELECT others.currency, others.place, sum(others.difference) AS difference, count(*) AS partners
FROM ranked AS others
ANTI JOIN shown ON shown.place = others.place AND shown.rank = others.rank
GROUP BY others.currency, others.place
ORDER BY place, rank NULLS LAST
