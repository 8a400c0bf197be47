-- Closed months that are not as they were signed off: what was posted for them, by currency.
-- needs: currencies
WITH posted AS (
    SELECT
        corrections.month, corrections.number, corrections.currency,
        coalesce(sum(corrections.difference) FILTER (corrections.side = 'usage'), 0) AS used,
        coalesce(sum(corrections.difference) FILTER (corrections.side = 'billing'), 0) AS billed,
        list(DISTINCT corrections.posted_to) AS posted_to
    FROM reconciliation.corrections AS corrections
    GROUP BY corrections.month, corrections.number, corrections.currency
)
SELECT
    closes.month, closes.preparer, closes.reviewer, closes.approval,
    coalesce(closes.approved_at, closes.closed_at) AS closed_at, closes.changed_records,
    closes.net_difference, closes.connections, posted.currency, posted.used, posted.billed, posted.billed - posted.used AS difference,
    posted.posted_to
FROM reconciliation.closes AS closes
LEFT JOIN posted USING (month, number)
LEFT JOIN currencies ON currencies.currency IS NOT DISTINCT FROM posted.currency
WHERE closes.state = 'outdated'
ORDER BY closes.month DESC, currencies.place
