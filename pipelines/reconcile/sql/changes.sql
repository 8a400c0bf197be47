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
)
SELECT
    rows.month, rows.side, rows.connection, hidden_id(rows.side, rows.id) AS id,
    hidden(rows.partner, rows.partner) AS partner, rows.currency,
    sum(rows.amount) FILTER (rows.sign = -1) AS amount_then,
    sum(rows.amount) FILTER (rows.sign = 1) AS amount_now
FROM month_rows AS rows
SEMI JOIN odd ON odd.key
    = hash(rows.month, rows.side, rows.connection, rows.id, rows.partner, rows.currency)
GROUP BY ALL
