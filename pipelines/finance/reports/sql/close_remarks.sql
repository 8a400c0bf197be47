-- Of each close: the note, why open breaks are accepted, who reopened the month and why.
SELECT
    closes.month, closes.number, closes.note, closes.accept_open, closes.reopened_at,
    closes.reopened_by, closes.reopened_reason, count(*) OVER () AS total
FROM reconciliation.closes AS closes
WHERE closes.note <> '' OR closes.accept_open IS NOT NULL OR closes.reopened_at IS NOT NULL
ORDER BY closes.month DESC, closes.number DESC
LIMIT 12
