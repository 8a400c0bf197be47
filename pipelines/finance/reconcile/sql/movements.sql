-- kind: TEMP VIEW
-- needs: versions
-- Each version of a record is added when it begins, and taken away when it ends. All but the first
-- one that was ever read are a change.
WITH first_read AS (  -- of records that have changed
    SELECT versions.connection, versions.side, versions._key, min(versions._valid_from) AS time
    FROM versions
    WHERE versions._valid_to IS NOT NULL
    GROUP BY versions.connection, versions.side, versions._key
)
SELECT
    versions.*, versions._valid_from AS moved_at, false AS is_end,
    coalesce(versions._valid_from > first_read.time, false) AS is_change
FROM versions
LEFT JOIN first_read USING (connection, side, _key)
UNION ALL BY NAME
SELECT versions.*, versions._valid_to AS moved_at, true AS is_end, true AS is_change
FROM versions
WHERE versions._valid_to IS NOT NULL
