-- The most severe come first, and the largest of each currency: amounts of two currencies cannot be
-- compared. A break whose counterpart is known comes later: both together may be nothing. What was
-- found today comes first.
-- needs: breaks currencies
SELECT breaks.*, rules.remedy
FROM breaks
LEFT JOIN reconciliation.rules AS rules USING (rule)
LEFT JOIN currencies ON currencies.currency IS NOT DISTINCT FROM breaks.currency
WHERE breaks.outcome = 'open'
ORDER BY list_position(['high', 'medium', 'low'], breaks.severity), row_number() OVER (
    PARTITION BY breaks.severity, breaks.currency
    ORDER BY breaks.other_partner IS NOT NULL, abs(breaks.difference) DESC NULLS LAST,
        breaks.break_id
), breaks.age_days > 0, currencies.place, breaks.break_id
