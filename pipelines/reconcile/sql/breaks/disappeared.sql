-- question: Are all records still there that were ever read?
-- needs: usage.id billing.id
-- remedy: Ask why the record was withdrawn. If that is right, resolve the break.
WITH versions AS (
    SELECT
        used.connection, used.partner, used.month, used.currency, 'usage' AS side, used.id,
        used.quantity, used.amount, used._scan_id, used._page, used._row, used.id AS record,
        used._valid_to, used._end_reason
    FROM used_history AS used
    UNION ALL
    SELECT
        billed.connection, billed.partner, billed.month, billed.currency, 'billing', billed.id,
        billed.quantity, billed.amount, billed._scan_id, billed._page, billed._row, billed.bill,
        billed._valid_to, billed._end_reason
    FROM billed_history AS billed
    WHERE billed.apart IS NULL
), gone AS (
    SELECT versions.*
    FROM versions
    WHERE versions._end_reason = 'deleted'
    QUALIFY versions._valid_to = max(versions._valid_to) OVER (
        PARTITION BY versions.connection, versions.side, versions.record
    )
)
SELECT
    gone.* EXCLUDE (record, _valid_to, _end_reason), gone.side || '|' || gone.record AS subject,
    gone.side || ' that is no longer in the list' AS cause
FROM gone
ANTI JOIN versions AS now
    ON now.connection = gone.connection AND now.side = gone.side AND now.record = gone.record
    AND now._valid_to IS NULL
