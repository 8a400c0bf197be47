-- `partners` is how many partners have an open break of any severity.
WITH open AS (
    SELECT breaks.connection, breaks.partner, breaks.severity
    FROM reconciliation.breaks AS breaks
    WHERE breaks.state <> 'resolved' AND breaks.uncertain IS NULL
)
SELECT
    open.severity, count(*) AS breaks,
    (SELECT count(DISTINCT (each.connection, each.partner)) FROM open AS each) AS partners
FROM open
GROUP BY open.severity
ORDER BY list_position(['high', 'medium', 'low'], open.severity)
