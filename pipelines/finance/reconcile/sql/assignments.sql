-- kind: VIEW
-- needs: break_facts
-- The person to whom each break is assigned to. The cause may be a part of what identifies a break (`not_billed`),
-- and it changes, for instance once there is a bill. Where the records are those that a person saw,
-- the owner stays. Records with one identifier, or without any, have one digest, whosever they are.
SELECT
    facts.break_id, max_by(assigned.owner, assigned.number) AS owner,
    max_by(assigned.reason, assigned.number) AS reason
FROM reconciliation.decisions AS assigned
JOIN reconciliation.break_facts AS decided USING (break_id)
JOIN reconciliation.break_facts AS facts
    ON facts.rule = decided.rule AND facts.connection = decided.connection
    AND facts.currency IS NOT DISTINCT FROM decided.currency
    AND (facts.break_id = decided.break_id OR (
        facts.rows_digest = assigned.rows_digest
        AND facts.partner IS NOT DISTINCT FROM decided.partner
        AND facts.month IS NOT DISTINCT FROM decided.month
    ))
WHERE assigned.kind = 'break_assign'
GROUP BY facts.break_id
