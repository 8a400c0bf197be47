-- kind: TEMP TABLE
-- needs: versions
-- When each record was read first, of those that have changed or were withdrawn.
SELECT versions.connection, versions.side, versions._key, min(versions._valid_from) AS time
FROM versions
WHERE versions._valid_to IS NOT NULL
GROUP BY versions.connection, versions.side, versions._key
