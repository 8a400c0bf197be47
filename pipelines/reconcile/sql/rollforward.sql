-- question: What is used and not yet billed, and how did it come about month by month?
-- needs: usage.partner usage.period usage.amount billing.partner billing.period billing.amount
-- remedy: A difference that is not 0 is a defect of partner-sync. Report it.
WITH first_read AS (  -- of records that have changed
    SELECT versions.connection, versions.side, versions._key, min(versions._valid_from) AS time
    FROM versions
    WHERE versions._valid_to IS NOT NULL
    GROUP BY versions.connection, versions.side, versions._key
), counted AS NOT MATERIALIZED (
    SELECT
        versions.connection, versions.partner, versions.currency, versions.month,
        if(versions.side = 'usage', versions.amount, -versions.amount) AS amount, versions.side,
        versions.apart, versions._valid_from, versions._valid_to,
        versions.recorded_at::DATE AS recorded, first_read.time AS first_read
    FROM versions
    LEFT JOIN first_read
        ON first_read.connection = versions.connection AND first_read.side = versions.side
        AND first_read._key = versions._key
    WHERE versions.apart IS NULL OR versions.apart = 'credit note'
), posted AS NOT MATERIALIZED (
    SELECT
        counted.* EXCLUDE (month),
        greatest(counted.month, date_trunc('month', if(
            counted._valid_from > counted.first_read, counted._valid_from::DATE, counted.recorded
        ))::DATE) AS month,
        CASE WHEN counted._valid_from > counted.first_read
                THEN if(counted.side = 'usage', 'restated', 'adjusted')
             WHEN counted.side = 'billing' THEN if(counted.apart IS NULL, 'billed', 'credited')
             WHEN date_trunc('month', counted.recorded) > counted.month THEN 'late'
             ELSE 'rated' END AS kind
    FROM counted
    UNION ALL BY NAME
    SELECT
        counted.* EXCLUDE (month) REPLACE (-counted.amount AS amount),
        greatest(counted.month, date_trunc('month', counted._valid_to)::DATE) AS month,
        if(counted.side = 'usage', 'restated', 'adjusted') AS kind
    FROM counted
    WHERE counted._valid_to IS NOT NULL
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
        counted.connection, counted.partner, counted.currency, sum(counted.amount) AS closing
    FROM counted
    WHERE counted._valid_to IS NULL AND counted.month IS NOT NULL
    GROUP BY counted.connection, counted.partner, counted.currency
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
