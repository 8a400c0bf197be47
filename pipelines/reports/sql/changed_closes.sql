-- Closed months that are not as they were signed off.
SELECT closes.month, closes.changed_records, closes.net_difference
FROM reconciliation.closes AS closes
WHERE closes.state = 'outdated'
ORDER BY closes.month DESC
