-- question: What is used and not yet billed, and how did it come about month by month?
-- needs: usage.partner usage.period usage.amount billing.partner billing.period billing.amount
-- remedy: A difference that is not 0 is a defect of partner-sync. Report it.
WITH first_read AS (  -- of records that have changed
    SELECT 'usage' AS side, used.connection, used._key, min(used._valid_from) AS time
    FROM used_history AS used
    WHERE used._valid_to IS NOT NULL
    GROUP BY used.connection, used._key
    UNION ALL
    SELECT 'billing', bills.connection, bills._key, min(bills._valid_from)
    FROM bills_history AS bills
    WHERE bills._valid_to IS NOT NULL
    GROUP BY bills.connection, bills._key
), versions AS NOT MATERIALIZED (
    SELECT
        used.connection, used.partner, used.currency, used.month, used.amount, 'usage' AS side,
        used._valid_from, used._valid_to, used.recorded_at::DATE AS recorded,
        first_read.time AS first_read
    FROM used_history AS used
    LEFT JOIN first_read
        ON first_read.side = 'usage' AND first_read._key = used._key
        AND first_read.connection = used.connection
    UNION ALL
    SELECT
        bills.connection, bills.partner, bills.currency, bills.month, -bills.amount,
        CASE bills.apart WHEN 'credit note' THEN 'credit' ELSE 'billing' END,
        bills._valid_from, bills._valid_to, NULL, first_read.time
    FROM bills_history AS bills
    LEFT JOIN first_read
        ON first_read.side = 'billing' AND first_read._key = bills._key
        AND first_read.connection = bills.connection
    WHERE bills.apart IS NULL OR bills.apart = 'credit note'
), posted AS NOT MATERIALIZED (
    SELECT
        versions.* EXCLUDE (month),
        CASE WHEN versions._valid_from > versions.first_read
                THEN greatest(versions.month, date_trunc('month', versions._valid_from)::DATE)
             ELSE greatest(versions.month, date_trunc('month', versions.recorded)::DATE)
        END AS month,
        CASE WHEN versions._valid_from > versions.first_read
                THEN if(versions.side = 'usage', 'restated', 'adjusted')
             WHEN versions.side <> 'usage' THEN if(versions.side = 'credit', 'credited', 'billed')
             WHEN date_trunc('month', versions.recorded) > versions.month THEN 'late'
             ELSE 'rated' END AS kind
    FROM versions
    UNION ALL BY NAME
    SELECT
        versions.* EXCLUDE (month) REPLACE (-versions.amount AS amount),
        greatest(versions.month, date_trunc('month', versions._valid_to)::DATE) AS month,
        if(versions.side = 'usage', 'restated', 'adjusted') AS kind
    FROM versions
    WHERE versions._valid_to IS NOT NULL
), moved AS (
    SELECT
        posted.connection, posted.partner, posted.currency, posted.month,
        coalesce(sum(posted.amount) FILTER (posted.kind = 'rated'), 0) AS rated,
        coalesce(sum(posted.amount) FILTER (posted.kind = 'late'), 0) AS late,
        coalesce(sum(posted.amount) FILTER (posted.kind = 'restated'), 0) AS restated,
        coalesce(-sum(posted.amount) FILTER (posted.kind = 'billed'), 0) AS billed,
        coalesce(-sum(posted.amount) FILTER (posted.kind = 'credited'), 0) AS credited,
        coalesce(-sum(posted.amount) FILTER (posted.kind = 'adjusted'), 0) AS adjusted,
        sum(posted.amount) AS change
    FROM posted
    WHERE posted.month IS NOT NULL AND posted.amount IS NOT NULL
    GROUP BY posted.connection, posted.partner, posted.currency, posted.month
), closed AS (
    SELECT
        moved.* EXCLUDE (change),
        sum(moved.change) OVER (
            PARTITION BY moved.connection, moved.partner, moved.currency ORDER BY moved.month
        ) AS closing,
        closing - moved.change AS opening,
        moved.month = max(moved.month) OVER (
            PARTITION BY moved.connection, moved.partner, moved.currency
        ) AS is_newest
    FROM moved
), direct AS (
    SELECT
        versions.connection, versions.partner, versions.currency, sum(versions.amount) AS closing
    FROM versions
    WHERE versions._valid_to IS NULL AND versions.month IS NOT NULL
    GROUP BY versions.connection, versions.partner, versions.currency
)
SELECT
    closed.connection, closed.partner, closed.currency, closed.month, closed.opening,
    closed.rated, closed.late, closed.restated, closed.billed, closed.credited, closed.adjusted,
    closed.closing,
    CASE WHEN closed.is_newest THEN closed.closing - coalesce(direct.closing, 0) END AS difference
FROM closed
LEFT JOIN direct ON direct.connection = closed.connection
    AND direct.partner IS NOT DISTINCT FROM closed.partner
    AND direct.currency IS NOT DISTINCT FROM closed.currency
ORDER BY ALL
