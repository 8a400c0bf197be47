-- question: Which bills are still to be paid, and since when?
-- needs: payments billing.amount
-- may lack: any role
-- remedy: Map billing.open, billing.paid or paid_statuses, and billing.due, where bills have them.
-- Credit notes count, and are negative. What a bill itself says is open counts first. Without it, a
-- bill is paid in full or not at all. NULL: nobody can say. A day of payment that is still to come is a
-- plan; that of the service may be a day ahead.
WITH counted AS (
    SELECT
        bills.connection, bills.partner, bills.month, bills.currency, bills.bill, bills.number,
        bills.issued_at, payments.due_on, bills.amount, payments.tax,
        CASE WHEN payments.open_amount IS NOT NULL THEN payments.open_amount
             WHEN payments.is_paid OR payments.paid_on <= read_until.day + 1 THEN 0
             WHEN payments.paid_on IS NOT NULL OR NOT getvariable('has_open') THEN bills.amount
             END AS open_amount
    FROM temp.bills AS bills
    JOIN temp.payments AS payments USING (connection, _key)
    LEFT JOIN read_until ON read_until.connection = bills.connection
    WHERE bills.apart IS NULL OR bills.apart = 'credit note'
)
SELECT counted.*
FROM counted
WHERE counted.open_amount IS DISTINCT FROM 0
