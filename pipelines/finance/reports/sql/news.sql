-- How many usage records and bills are new, changed and deleted since the previous version, if any.
SELECT
    loads.stream, sum(loads.new)::BIGINT AS new, sum(loads.changed)::BIGINT AS changed,
    sum(loads.deleted)::BIGINT AS deleted
FROM meta.loads AS loads
WHERE loads.stream IN ('usage', 'billing')
    AND NOT list_contains(getvariable('known_scans')::VARCHAR[], loads.scan_id)
GROUP BY loads.stream
HAVING sum(loads.new + loads.changed + loads.deleted) > 0
ORDER BY loads.stream DESC
