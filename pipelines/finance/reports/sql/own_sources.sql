-- Own books: what was read of each source, why it was not compared, and its open breaks.
-- needs: open_breaks
SELECT
    sources.*, rules.rule, (
        SELECT count(*) FROM open_breaks AS breaks
        WHERE breaks.own_source = sources.source
    ) AS open_breaks
FROM reconciliation.own_sources AS sources
LEFT JOIN reconciliation.rules AS rules ON rules.own_source = sources.source
ORDER BY sources.source
