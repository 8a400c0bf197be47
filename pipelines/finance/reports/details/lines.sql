-- The lines of the first bills that the page lists, in the order of these. `bill` is the place of a
-- bill in that list, from 0; `lines` counts all that it has.
-- A line has the plan, metric, region and unit of the usage that it names, where it has not its own.
-- What a bill has above or below its lines is a line, too: so they add up to its total.
-- `used_on`, `used_quantity` and `used_amount` are of that usage; `=` is the value of the line itself,
-- which takes less room. Usage in another currency has it in `used_in`, and no amount.
WITH lines AS (
    SELECT
        listed.place AS bill, lines.is_whole, regexp_extract(lines.id, '#(\d+|rest)$', 1) AS line,
        count(*) OVER (PARTITION BY listed.place) AS lines,
        lines.connection, lines.currency, lines.reference, lines.fee, lines.plan, lines.metric, lines.region, lines.unit,
        lines.quantity, lines.price, lines.amount
    FROM listed_bills AS listed
    JOIN temp.billed AS lines USING (connection, _key)
    WHERE listed.lines_before < $most
), named AS (
    SELECT
        used.connection, used.id, any_value(used.plan) AS plan, any_value(used.metric) AS metric,
        any_value(used.region) AS region, any_value(used.unit) AS unit, min(used.day) AS day,
        sum(used.quantity) AS quantity, sum(used.amount) AS amount,
        any_value(used.currency) AS currency
    FROM temp.used AS used
    SEMI JOIN lines ON lines.connection = used.connection AND lines.reference = used.id
    GROUP BY used.connection, used.id
)
SELECT
    lines.bill,
    CASE WHEN lines.is_whole THEN 'total, without lines'
         WHEN lines.line = 'rest' THEN 'total minus lines' ELSE '#' || lines.line END AS line,
    lines.lines, lines.reference, lines.fee, coalesce(lines.plan, named.plan) AS plan,
    coalesce(lines.metric, named.metric) AS metric,
    coalesce(lines.region, named.region) AS region, coalesce(lines.unit, named.unit) AS unit,
    exact(lines.quantity) AS quantity, exact(lines.price) AS price, exact(lines.amount) AS amount,
    strftime(named.day, '%Y-%m-%d') AS used_on,
    if(named.quantity = lines.quantity, '=', exact(named.quantity)) AS used_quantity,
    if(named.currency <> lines.currency, named.currency, NULL) AS used_in,
    CASE WHEN named.currency <> lines.currency THEN NULL
         WHEN named.amount = lines.amount THEN '=' ELSE exact(named.amount) END AS used_amount
FROM lines
LEFT JOIN named ON named.connection = lines.connection AND named.id = lines.reference
ORDER BY lines.bill, try_cast(lines.line AS BIGINT) NULLS LAST
LIMIT $most
