-- question: Which records of closed months are read otherwise than when the month was signed off?
-- needs: changed_records
-- remedy: Nothing: the records did not change, so no correction is posted. Reopen the month to accept them.
SELECT
    changes.month, 'read otherwise' AS cause, changes.side, changes.connection, changes.id,
    changes.partner, changes.currency, changes.amount_then AS amount_before, changes.amount_now,
    coalesce(changes.amount_now, 0) - coalesce(changes.amount_then, 0) AS difference
FROM reconciliation.changed_records AS changes
JOIN reconciliation.closed_months AS closes ON closes.month = changes.month AND NOT closes.is_reopened
WHERE changes.is_otherwise
ORDER BY ALL
