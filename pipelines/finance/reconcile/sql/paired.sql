-- kind: TEMP VIEW
-- needs: exceptions
-- Rows that are compared, with what their pair is.
SELECT
    rows.*, pairs.status, pairs.used_rows, pairs.difference AS pair_difference,
    pairs.partner AS pair_partner, pairs.month AS pair_month
FROM compared AS rows
JOIN reconciliation.exceptions AS pairs
    ON pairs.connection = rows.connection AND pairs.key = rows.key
    AND pairs.currency IS NOT DISTINCT FROM rows.currency
