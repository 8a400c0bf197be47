-- How many rows has each stream, of when, and is anything the matter?
SELECT
    freshness.connection,
    freshness.stream,
    freshness.rows,
    freshness.quarantined,
    freshness.day,
    freshness.ended_at AS read_until,
    freshness.published_at,
    freshness.version,
    proofs.doubt
FROM meta.freshness
LEFT JOIN meta.proofs USING (connection, stream, manifest)
ORDER BY freshness.connection, freshness.stream;
