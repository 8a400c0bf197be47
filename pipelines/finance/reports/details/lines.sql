-- The lines of the first bills that the page lists, in the order of these. `bill` is the place of a
-- bill in that list, from 0; `lines` counts all that it has.
-- What a bill has above or below its lines is a line, too: so they add up to its total.
WITH lines AS (
    SELECT
        listed.place AS bill, regexp_extract(lines.id, '#(\d+|rest)$', 1) AS line,
        count(*) OVER (PARTITION BY listed.place) AS lines,
        lines.reference, lines.fee, lines.plan, lines.metric, lines.region, lines.unit,
        lines.quantity, lines.price, lines.amount
    FROM listed_bills AS listed
    JOIN temp.billed AS lines USING (connection, _key)
    WHERE listed.lines_before < $most
)
SELECT
    lines.bill, if(lines.line = 'rest', 'total minus lines', '#' || lines.line) AS line,
    lines.lines, lines.reference, lines.fee, lines.plan, lines.metric, lines.region, lines.unit,
    exact(lines.quantity) AS quantity, exact(lines.price) AS price, exact(lines.amount) AS amount
FROM lines
ORDER BY lines.bill, try_cast(lines.line AS BIGINT) NULLS LAST
LIMIT $most
