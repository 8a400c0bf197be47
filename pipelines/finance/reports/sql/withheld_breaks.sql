-- What each break overbills on bills that are still to be paid: no more than is open of its bills, and
-- of all breaks of a bill, no more than is open of it: the largest come first. Only where it is known what is paid. Of a bill
-- of which nobody can say it, all is open.
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
        bills.break_id, bills.currency, bills.difference, bills.connection, bills.bill,
        unpaid.open_amount, greatest(0, coalesce(unpaid.open_amount, bills.difference)) AS amount
    FROM bills
    JOIN reconciliation.receivables AS unpaid
        ON unpaid.connection = bills.connection AND unpaid.bill = bills.bill
        AND unpaid.currency IS NOT DISTINCT FROM bills.currency
), parts AS (
    -- Of the bills of a break, those with the most open come first.
    SELECT
        open.*,
        least(open.amount, greatest(0, open.difference + open.amount - sum(open.amount) OVER (
            PARTITION BY open.break_id ORDER BY open.amount DESC, open.connection, open.bill
            ROWS UNBOUNDED PRECEDING
        ))) AS part
    FROM open
), of_bills AS (
    SELECT
        parts.break_id, parts.currency,
        if(parts.open_amount IS NULL, parts.part, least(
            parts.part,
            greatest(0, parts.open_amount + parts.part - sum(parts.part) OVER (
                PARTITION BY parts.connection, parts.bill, parts.currency
                ORDER BY parts.part DESC, parts.break_id
                ROWS UNBOUNDED PRECEDING
            ))
        )) AS amount
    FROM parts
    WHERE parts.part > 0
)
SELECT of_bills.break_id, of_bills.currency, sum(of_bills.amount) AS amount
FROM of_bills
JOIN reconciliation.rules AS rules ON rules.rule = 'receivables' AND rules.evaluated
WHERE of_bills.amount > 0
GROUP BY of_bills.break_id, of_bills.currency
