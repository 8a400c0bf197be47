-- The most severe come first, and of these the largest by the materiality of their currency: so
-- breaks of two currencies can be compared.
-- needs: breaks
SELECT breaks.*, rules.remedy, places.materiality, assigned.reason AS assigned_because
FROM breaks
LEFT JOIN reconciliation.rules AS rules USING (rule)
JOIN break_order AS places USING (break_id)
LEFT JOIN reconciliation.assignments AS assigned USING (break_id)
WHERE breaks.outcome = 'open'
ORDER BY places.place
