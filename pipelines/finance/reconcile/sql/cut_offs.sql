-- As of when a month is compared with what is known now: its close, else the first load of the list
-- after its grace days. NULL: it is not due yet. Where history begins later, nobody knows what was
-- known then: `history_from` says since when rows have a history.
WITH loads AS (
    SELECT
        loads.connection, loads.stream AS side, loads.ended_at::DATE AS day,
        min(loads.valid_time) AS valid_time
    FROM meta.loads AS loads
    WHERE loads.stream IN ('usage', 'billing')
    GROUP BY loads.connection, loads.stream, loads.ended_at::DATE
), first_loads AS (
    SELECT loads.connection, loads.side, min(loads.day) AS day, min(loads.valid_time) AS valid_time
    FROM loads
    GROUP BY loads.connection, loads.side
), months AS (
    SELECT DISTINCT
        versions.connection, versions.month,
        (versions.month + INTERVAL 1 MONTH)::DATE + getvariable('grace_days') AS due_on
    FROM versions
    WHERE versions.month IS NOT NULL
), closed AS (
    SELECT
        lists.month, loads.connection, loads.stream AS side, max(loads.valid_time) AS valid_time
    FROM closed_lists AS lists
    JOIN meta.loads AS loads ON loads.scan_id = lists.scan_id
    GROUP BY lists.month, loads.connection, loads.stream
), due AS (
    SELECT
        months.connection, first_loads.side, months.month, months.due_on,
        first_loads.day AS history_day, first_loads.valid_time AS history_from
    FROM months
    JOIN first_loads USING (connection)
)
SELECT
    due.connection, due.side, due.month, closed.valid_time IS NOT NULL AS is_closed,
    coalesce(closed.valid_time, loads.valid_time) AS cut_off,
    if(closed.valid_time IS NULL AND due.history_day > due.due_on, due.history_from, NULL)
        AS history_from
FROM due
ASOF LEFT JOIN loads
    ON loads.connection = due.connection AND loads.side = due.side AND loads.day >= due.due_on
LEFT JOIN closed
    ON closed.connection = due.connection AND closed.side = due.side AND closed.month = due.month
