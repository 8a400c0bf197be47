-- needs: month_rows unreadable
-- Records of closed months that are not as they were signed off.
-- Most records of closed months are as they were signed off: only the others are grouped by all
-- that identifies a record. An identifier that was erased is in the copy still, perhaps as that of
-- a bill's line: it is hidden.
-- A record that is the same version as when the month was signed off did not change: it is only read
-- otherwise, as after an upgrade. The month of a bill may rest on the usage that it names.
-- A connection may have been added since: the copy has no list of it, and all its records are new.
-- A record that cannot be read now may be worth what was signed off: it is not gone, in whatever
-- month it may be.
WITH odd AS (
    SELECT hash(rows.month, rows.side, rows.connection, rows.id, rows.partner, rows.currency) AS key
    FROM month_rows AS rows
    GROUP BY key
    HAVING sum(rows.sign) <> 0 OR sum(rows.sign * rows.amount) <> 0
        OR sum(rows.sign * rows.quantity) <> 0
        OR count(rows.amount) FILTER (rows.sign = 1) <> count(rows.amount) FILTER (rows.sign = -1)
), signed AS (
    SELECT
        closed.month, loads.connection, max(loads.valid_time) AS read_at,
        max(loads.valid_time) FILTER (loads.stream = 'usage') AS usage,
        max(loads.valid_time) FILTER (loads.stream = 'billing') AS billing
    FROM closed_lists AS closed
    JOIN meta.loads AS loads ON loads.scan_id = closed.scan_id
    GROUP BY closed.month, loads.connection
), copied AS (
    SELECT DISTINCT closed.month, regexp_replace(closed.list, '/[^/]*$', '') AS connection
    FROM closed_lists AS closed
), versions_now AS (
    SELECT
        'usage' AS side, used.connection, used._key, used._valid_from,
        used._valid_from AS known_from
    FROM temp.used AS used
    UNION ALL
    SELECT
        'billing', billed.connection, billed._key, billed._valid_from, max(billed.known_from)
    FROM temp.billed AS billed
    GROUP BY ALL
), unread AS (
    SELECT DISTINCT
        records.side, records.connection,
        if(contains(records.roles, 'line_'), regexp_replace(records.id, '#[^#]*$', ''), records.id)
            AS record
    FROM reconciliation.unreadable AS records
)
SELECT
    rows.month, rows.side, rows.connection, hidden_id(rows.side, rows.id) AS id,
    hidden(rows.partner, rows.partner) AS partner, rows.currency,
    sum(rows.amount) FILTER (rows.sign = -1) AS amount_then,
    sum(rows.amount) FILTER (rows.sign = 1) AS amount_now,
    bool_and(coalesce(
        (rows.sign = 1 OR now._valid_from = rows._valid_from)
            AND now._valid_from <= if(rows.side = 'usage', signed.usage, signed.billing)
            AND now.known_from <= greatest(signed.usage, signed.billing),
        false
    )) AS is_otherwise,
    bool_or(count(unread.record) > 0 OR count(*) FILTER (rows.sign = 1 AND rows.amount IS NULL) > 0)
        OVER (PARTITION BY rows.side, rows.connection, rows.id) AS is_unread,
    bool_and(copied.connection IS NULL) AS is_added
FROM month_rows AS rows
LEFT JOIN versions_now AS now ON now.connection = rows.connection AND now.side = rows.side
    AND now._key = rows._key
LEFT JOIN unread ON unread.side = rows.side AND unread.connection = rows.connection
    AND unread.record
        = if(rows.side = 'billing', regexp_replace(rows.id, '#[^#]*$', ''), rows.id)
LEFT JOIN signed ON signed.month = rows.month AND signed.connection = rows.connection
LEFT JOIN copied ON copied.month = rows.month AND copied.connection = rows.connection
SEMI JOIN odd ON odd.key
    = hash(rows.month, rows.side, rows.connection, rows.id, rows.partner, rows.currency)
GROUP BY
    rows.month, rows.side, rows.connection, rows.id, rows.partner, rows.currency
