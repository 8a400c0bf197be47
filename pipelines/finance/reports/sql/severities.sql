-- Of breaks of used and billed, as the list of open breaks has them. `partners` is how many partners
-- have an open break of any severity, `unknown_partners` how many other identifiers, which are in no
-- list of partners.
-- needs: open_breaks
WITH named AS (
    SELECT breaks.connection, breaks.partner, bool_or(breaks.rule = 'unknown_partner') AS is_unknown
    FROM open_breaks AS breaks
    WHERE breaks.partner IS NOT NULL AND breaks.own_source IS NULL
    GROUP BY breaks.connection, breaks.partner
)
SELECT
    breaks.severity, count(*) AS breaks,
    (SELECT count(*) FROM named WHERE NOT named.is_unknown) AS partners,
    (SELECT count(*) FROM named WHERE named.is_unknown) AS unknown_partners
FROM open_breaks AS breaks
WHERE breaks.own_source IS NULL
GROUP BY breaks.severity
ORDER BY list_position(['high', 'medium', 'low'], breaks.severity)
