-- kind: TEMP TABLE
-- What each used record is of, in its latest version. A line that names it bills the same, where the
-- line itself does not say it. Without any such role of usage, no row is read.
SELECT
    used.connection, used.key,
    arg_max({
        'plan': used.plan, 'metric': used.metric, 'unit': used.unit, 'region': used.region,
        'organization': used.organization
    }, (used._valid_from, used._key)) AS of
FROM used_history AS used
WHERE getvariable('has_items') AND used.id IS NOT NULL
GROUP BY used.connection, used.key
