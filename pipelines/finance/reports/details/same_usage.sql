-- Other bills that name the same usage records as a bill that the page lists, such as what a credit
-- note takes back, or what replaced a void bill: at most ten of each, those with the most records first.
-- `bill` is the place of a bill in that list, from 0; `others` counts all that are known of it.
-- Of the bills of one record, the first 20 are looked at: a record that all bills name says nothing.
WITH lines AS MATERIALIZED (
    SELECT
        lines.connection, lines.reference, lines._key, coalesce(lines.number, lines.bill) AS bill,
        coalesce(lines.apart, 'bill') AS kind
    FROM temp.billed AS lines
    WHERE lines.reference IS NOT NULL
), wanted AS (
    SELECT lines.connection, lines.reference
    FROM lines
    SEMI JOIN listed_bills AS listed USING (connection, _key)
), named AS (
    SELECT DISTINCT lines.*
    FROM lines
    SEMI JOIN wanted USING (connection, reference)
), shared AS (
    SELECT
        lines.*, count(*) OVER one AS bills,
        row_number() OVER (one ORDER BY lines.bill, lines._key) AS number
    FROM named AS lines
    WINDOW one AS (PARTITION BY lines.connection, lines.reference)
    QUALIFY bills > 1
), pairs AS (
    SELECT listed.place AS bill, others.bill AS other, others.kind, count(*) AS records
    FROM shared
    JOIN listed_bills AS listed USING (connection, _key)
    JOIN shared AS others
        ON others.connection = shared.connection AND others.reference = shared.reference
        AND others._key <> shared._key AND others.number <= 20
    GROUP BY listed.place, others._key, others.bill, others.kind
)
SELECT pairs.bill, pairs.other, pairs.kind, pairs.records, count(*) OVER one AS others
FROM pairs
WINDOW one AS (PARTITION BY pairs.bill)
QUALIFY row_number() OVER (one ORDER BY pairs.records DESC, pairs.other) <= 10
ORDER BY pairs.bill, pairs.records DESC, pairs.other
LIMIT $most
