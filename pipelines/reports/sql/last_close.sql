-- The month that was signed off last, and the version that was published then.
SELECT closes.month, closes.version
FROM reconciliation.closes AS closes
WHERE closes.state <> 'reopened'
ORDER BY closes.closed_at DESC, closes.month DESC
LIMIT 1
