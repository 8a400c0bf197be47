-- What is overbilled on bills that are still to be paid: of each break, no more than is open of its
-- bills, and of each bill, no more than is open of it. Only where it is known what is paid. Of a bill
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
    SELECT parts.currency, least(sum(parts.part), any_value(parts.open_amount)) AS amount
    FROM parts
    WHERE parts.part > 0
    GROUP BY parts.connection, parts.bill, parts.currency
), counts AS (
    SELECT parts.currency, count(DISTINCT parts.break_id) AS number
    FROM parts
    WHERE parts.part > 0
    GROUP BY parts.currency
)
SELECT of_bills.currency, sum(of_bills.amount) AS difference, any_value(counts.number) AS number
FROM of_bills
JOIN counts ON counts.currency IS NOT DISTINCT FROM of_bills.currency
JOIN reconciliation.rules AS rules ON rules.rule = 'receivables' AND rules.evaluated
GROUP BY of_bills.currency
ORDER BY of_bills.currency
