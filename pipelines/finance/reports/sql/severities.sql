-- `partners` is how many partners have an open break of any severity.
-- needs: open_breaks
SELECT
    breaks.severity, count(*) AS breaks,
    (SELECT count(DISTINCT (open_breaks.connection, open_breaks.partner)) FROM open_breaks)
        AS partners
FROM open_breaks AS breaks
GROUP BY breaks.severity
ORDER BY list_position(['high', 'medium', 'low'], breaks.severity)
