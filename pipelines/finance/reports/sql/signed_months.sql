-- Months that are signed off, the newest first, with what proves their copies.
SELECT
    closes.month, closes.number, closes.preparer, closes.reviewer, closes.approval,
    coalesce(closes.approved_at, closes.closed_at) AS closed_at, closes.connections,
    closes.manifest_sha256, closes.has_mapping, closes.accept_open, count(*) OVER () AS total
FROM reconciliation.closes AS closes
WHERE closes.state <> 'reopened'
ORDER BY closes.month DESC, closes.number DESC
LIMIT 12
