-- question: Are all records still there that were ever read?
-- needs: usage.id billing.id
-- remedy: Ask why the record was withdrawn. If that is right, resolve the break.
WITH gone AS (
    SELECT
        used.connection, used.partner, used.month, used.currency, 'usage' AS side, used.id,
        used.quantity, used.amount, used._scan_id, used._page, used._row, used._valid_to
    FROM used_history AS used
    WHERE used._end_reason = 'deleted'
    UNION ALL
    SELECT
        bills.connection, bills.partner, bills.month, bills.currency, 'billing', bills.bill,
        NULL, bills.amount, bills._scan_id, bills._page, bills._row, bills._valid_to
    FROM bills_history AS bills
    WHERE bills._end_reason = 'deleted' AND bills.apart IS NULL
)
SELECT
    gone.* EXCLUDE (_valid_to), gone.side || '|' || gone.id AS subject,
    gone.side || ' that is no longer in the list' AS cause
FROM gone
ANTI JOIN reconciliation.used AS used
    ON gone.side = 'usage' AND used.connection = gone.connection AND used.id = gone.id
ANTI JOIN reconciliation.bills AS bills
    ON gone.side = 'billing' AND bills.connection = gone.connection AND bills.bill = gone.id
QUALIFY gone._valid_to = max(gone._valid_to) OVER (
    PARTITION BY gone.connection, gone.side, gone.id
)
