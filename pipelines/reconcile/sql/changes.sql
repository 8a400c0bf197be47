-- kind: TEMP TABLE
-- needs: month_rows
-- Most records of closed months are as they were signed off: only the others are grouped by all
-- that identifies a record. An identifier that was erased is in the copy still, perhaps as that of
-- a bill's line: it is hidden.
WITH odd AS (
    SELECT hash(rows.month, rows.side, rows.connection, rows.id, rows.partner, rows.currency) AS key
    FROM month_rows AS rows
    GROUP BY key
    HAVING sum(rows.sign) <> 0 OR sum(rows.sign * rows.amount) <> 0
        OR sum(rows.sign * rows.quantity) <> 0
), named AS (
    SELECT
        rows.*,
        if(rows.side = 'billing', regexp_replace(rows.id, '#[^#]*$', ''), rows.id) AS record
    FROM month_rows AS rows
    SEMI JOIN odd ON odd.key
        = hash(rows.month, rows.side, rows.connection, rows.id, rows.partner, rows.currency)
)
SELECT
    named.month, named.side, named.connection,
    hidden(named.id, named.record) AS id, hidden(named.partner, named.partner) AS partner,
    named.currency,
    sum(named.amount) FILTER (named.sign = -1) AS amount_then,
    sum(named.amount) FILTER (named.sign = 1) AS amount_now
FROM named
GROUP BY ALL
