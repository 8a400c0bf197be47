-- Which breaks are open, how old are they, and who looks after them? The gravest first; what may
-- only have been missed while reading (artefacts) is left out.
SELECT
    break_id,
    rule,
    severity,
    partner_name,
    month,
    currency,
    used_amount,
    billed_amount,
    difference,
    cause,
    age_days,
    state,
    owner
FROM reconciliation.breaks
WHERE state <> 'RESOLVED' AND NOT artefact
ORDER BY severity = 'high' DESC, severity = 'medium' DESC, abs(difference) DESC, break_id;
