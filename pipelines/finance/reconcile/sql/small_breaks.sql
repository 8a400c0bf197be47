-- kind: VIEW
-- needs: breaks
-- Breaks of a partner and currency that are not material, but add up to a material amount. Those of
-- own books are no part of what is billed: each source has its own sum.
SELECT
    breaks.connection, breaks.partner, any_value(breaks.partner_name) AS partner_name,
    breaks.currency, 'high' AS severity, count(*) AS breaks, sum(breaks.difference) AS difference,
    any_value(breaks.materiality) AS materiality
FROM reconciliation.breaks AS breaks
WHERE breaks.state <> 'resolved' AND breaks.uncertain IS NULL AND breaks.severity <> 'high'
    AND breaks.difference IS NOT NULL
GROUP BY breaks.connection, breaks.partner, breaks.currency, breaks.own_source
HAVING coalesce(TRY_CAST(abs(sum(breaks.difference)) AS DECIMAL(38, 18))
    >= any_value(breaks.materiality), true)
