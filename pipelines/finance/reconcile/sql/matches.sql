-- kind: TEMP VIEW
-- question: Does each used record, or each partner's month, agree with what is billed?
-- needs: exceptions
-- remedy: See the breaks of the partner and month.
-- What is no exception is balanced to the last digit.
WITH rows AS (
    SELECT 'usage' AS side, used.* FROM temp.used AS used WHERE used.unread IS NULL
    UNION ALL BY NAME
    SELECT 'billing' AS side, billed.* FROM temp.billed AS billed
    WHERE billed.key IS NOT NULL AND billed.apart IS NULL AND billed.unread IS NULL
)
SELECT exceptions.* FROM reconciliation.exceptions AS exceptions
UNION ALL BY NAME
SELECT
    rows.connection, rows.key, min(rows.partner) AS partner,
    coalesce(min(rows.month) FILTER (rows.side = 'usage'), min(rows.month)) AS month, rows.currency,
    count(*) FILTER (rows.side = 'usage') AS used_rows,
    count(*) FILTER (rows.side = 'billing') AS billed_rows,
    sum(rows.quantity) FILTER (rows.side = 'usage') AS used_quantity,
    sum(rows.quantity) FILTER (rows.side = 'billing') AS billed_quantity,
    sum(rows.amount) FILTER (rows.side = 'usage') AS used_amount,
    sum(rows.amount) FILTER (rows.side = 'billing') AS billed_amount,
    0 AS difference, min(rows.partner) AS billed_partner, 'balanced' AS status
FROM rows
ANTI JOIN reconciliation.exceptions AS exceptions USING (connection, key)
GROUP BY rows.connection, rows.key, rows.currency
