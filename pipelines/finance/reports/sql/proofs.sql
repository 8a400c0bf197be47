-- Usage is compared with billing, so of a connection that reads one of the three lists all of them
-- are shown, also those that were never read.
SELECT
    lists.connection, lists.stream, lists.is_compared, lists.complete, lists.rows,
    lists.ended_at AS as_of, lists.sentence, lists.in_quarantine
FROM reconciliation.lists AS lists
ORDER BY lists.connection, list_position(['partners', 'usage', 'billing'], lists.stream)
    NULLS LAST, lists.stream
