-- Usage is compared with billing, so of a connection that reads one of the three lists all of them
-- are shown, also those that were never read.
WITH expected AS (
    SELECT DISTINCT loads.connection, unnest(['partners', 'usage', 'billing']) AS stream
    FROM meta.loads AS loads
    WHERE loads.stream IN ('partners', 'usage', 'billing')
    UNION
    SELECT loads.connection, loads.stream
    FROM meta.loads AS loads
)
SELECT
    expected.connection, expected.stream,
    expected.stream IN ('partners', 'usage', 'billing') AS is_compared,
    max_by(loads.complete, loads.valid_time) AS complete,
    max_by(loads.rows, loads.valid_time) AS rows,
    max_by(loads.ended_at, loads.valid_time) AS as_of,
    max_by(loads.sentence, loads.valid_time) AS sentence,
    (SELECT count(*) FROM quarantine.records AS records
        WHERE (records.connection, records.stream) = (expected.connection, expected.stream)
    ) AS in_quarantine
FROM expected
LEFT JOIN meta.loads AS loads USING (connection, stream)
GROUP BY expected.connection, expected.stream
ORDER BY expected.connection, list_position(['partners', 'usage', 'billing'], expected.stream)
    NULLS LAST, expected.stream
