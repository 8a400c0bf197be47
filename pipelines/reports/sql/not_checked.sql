-- Rules that were to find breaks and could not be evaluated.
SELECT rules.question, rules.reason
FROM reconciliation.rules AS rules
WHERE NOT rules.evaluated AND rules.rule IN (
    'unknown_partner', 'not_billed', 'not_used', 'billed_twice', 'different', 'disappeared'
)
