-- question: What is used and not yet billed, and how did it come about month by month?
-- needs: first_read usage.partner usage.period usage.amount billing.partner billing.period billing.amount
-- remedy: A difference that is not 0 is a defect of partner-sync. Report it.
WITH counted AS NOT MATERIALIZED (
    SELECT
        versions.connection, versions.partner, versions.currency, versions.month,
        if(versions.side = 'usage', versions.amount, -versions.amount) AS amount,
        versions.apart, versions._valid_from, versions._valid_to,
        versions.recorded_on AS recorded, first_read.time AS first_read,
        if(versions.side = 'usage', 'restated', 'adjusted') AS changed,
        if(versions.side = 'usage', 'rated', 'billed') AS added
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
        CASE WHEN counted._valid_from > counted.first_read THEN counted.changed
             WHEN counted.apart IS NOT NULL THEN 'credited'
             WHEN date_trunc('month', counted.recorded) > counted.month THEN 'late'
             ELSE counted.added END AS kind,
        if(counted._valid_to IS NULL AND counted.month IS NOT NULL, counted.amount, 0) AS held
    FROM counted
    UNION ALL BY NAME
    SELECT
        counted.* EXCLUDE (month) REPLACE (-counted.amount AS amount),
        greatest(counted.month, date_trunc('month', counted._valid_to)::DATE) AS month,
        counted.changed AS kind, 0 AS held
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
        sum(posted.amount) AS change, sum(posted.held) AS held
    FROM posted
    WHERE posted.month IS NOT NULL AND posted.amount IS NOT NULL
    GROUP BY posted.connection, posted.partner, posted.currency, posted.month
)
SELECT
    moved.connection, moved.partner, moved.currency, moved.month,
    sum(moved.change) OVER (one ORDER BY moved.month) - moved.change AS opening,
    moved.rated, moved.late, moved.restated, moved.billed, moved.credited, moved.adjusted,
    opening + moved.change AS closing,
    CASE WHEN moved.month = max(moved.month) OVER one
        THEN closing - sum(moved.held) OVER one END AS difference
FROM moved
WINDOW one AS (PARTITION BY moved.connection, moved.partner, moved.currency)
ORDER BY ALL
