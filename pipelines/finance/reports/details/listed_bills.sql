-- The bills that may bill too much, by an open break, then those of other breaks, then the bills and
-- credit notes of the two newest months that have begun, and those of which something is still to be
-- paid; the newest months first. If there are fewer than 10,000, the newest of all others, too.
-- `bills` and `lines` read this table. `lines_before`: of the bills above it, those of usage.
WITH begun AS (
    SELECT DISTINCT bills.month
    FROM reconciliation.bill_totals AS bills
    CROSS JOIN as_of
    WHERE bills.month <= as_of.as_of::DATE
    ORDER BY bills.month DESC
    LIMIT 2
)
SELECT
    bills.connection, bills._key, coalesce(bills.number, bills.bill) AS bill,
    coalesce(names.partner, bills.partner, 'no partner') AS partner, bills.partner AS partner_id,
    bills.month, bills.currency, bills.issued_at, bills.due_on, bills.paid_on, bills.apart,
    bills.amount,
    open.open_amount,
    CASE WHEN NOT getvariable('knows_payments') THEN NULL
         WHEN bills.apart <> 'credit note' THEN 'void, draft or cancelled'
         WHEN open.bill IS NULL THEN if(bills.apart = 'credit note', 'used up', 'paid')
         WHEN open.open_amount IS NULL THEN 'to be paid: amount not known'
         WHEN open.open_amount < 0 THEN 'not used up'
         ELSE 'to be paid' END AS payment,
    CASE WHEN open.open_amount < 0 THEN NULL
         WHEN open.due_in = 'overdue' THEN concat('overdue: ', replace(replace(open.days, '-', ' to '), '>', 'over '), ' days')
         ELSE open.due_in END AS due_in,
    CASE WHEN open.bill IS NULL OR open.open_amount < 0 THEN NULL
         WHEN found.is_in_question THEN 'in question'
         ELSE 'not in question' END AS in_question,
    coalesce(open.open_amount <> 0, false) OR found.bill IS NOT NULL OR begun.month IS NOT NULL
        AS is_first,
    row_number() OVER in_order - 1 AS place,
    sum(bills.usage_lines) OVER in_order - bills.usage_lines AS lines_before
FROM reconciliation.bill_totals AS bills
LEFT JOIN finance.names AS names
    ON names.connection = bills.connection AND names.partner_id = bills.partner
LEFT JOIN finance.bills_with_breaks AS found
    ON found.connection = bills.connection AND found.bill = bills.bill
LEFT JOIN begun ON begun.month = bills.month
LEFT JOIN to_pay AS open
    ON open.connection = bills.connection AND open.bill = bills.bill
    AND open.currency IS NOT DISTINCT FROM bills.currency
WINDOW in_order AS (
    ORDER BY found.is_in_question DESC NULLS LAST, is_first DESC, bills.month DESC, names.partner,
        bills.partner, coalesce(bills.number, bills.bill), bills.connection, bills._key
    ROWS UNBOUNDED PRECEDING
)
QUALIFY is_first OR place < 10000
