-- Own books: what was read of each source, why it was not compared, and its open breaks.
-- needs: open_breaks
SELECT
    sources.*, (
        SELECT count(*) FROM open_breaks AS breaks
        WHERE breaks.rule = concat('own_', sources.source)
    ) AS open_breaks
FROM reconciliation.own_sources AS sources
ORDER BY sources.source
