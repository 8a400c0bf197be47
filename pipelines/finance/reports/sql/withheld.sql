-- What is overbilled on bills that are still to be paid: of each break, no more than is open of its
-- bills. Only where it is known what is paid. Of a bill of which nobody can say it, all is open.
-- needs: claim_breaks
WITH bills AS (
    SELECT DISTINCT
        breaks.break_id, breaks.currency, breaks.difference, rows.connection,
        regexp_replace(rows.id, '#(\d+|rest)$', '') AS bill
    FROM claim_breaks AS breaks
    JOIN reconciliation.break_rows AS rows USING (break_id)
    WHERE breaks.reason = 'overbilled' AND rows.side = 'billing'
), open AS (
    SELECT
        bills.break_id, bills.currency, bills.difference,
        sum(greatest(0, coalesce(unpaid.open_amount, bills.difference))) AS amount
    FROM bills
    JOIN reconciliation.receivables AS unpaid
        ON unpaid.connection = bills.connection AND unpaid.bill = bills.bill
        AND unpaid.currency IS NOT DISTINCT FROM bills.currency
    GROUP BY bills.break_id, bills.currency, bills.difference
)
SELECT
    open.currency, sum(least(open.difference, open.amount)) AS difference, count(*) AS number
FROM open
JOIN reconciliation.rules AS rules ON rules.rule = 'receivables' AND rules.evaluated
WHERE open.amount > 0
GROUP BY open.currency
ORDER BY open.currency
