-- kind: TEMP VIEW
-- Rows of usage and lines of bills that are compared.
SELECT 'usage' AS side, used.*, hash(used.connection, used.key) AS hash
FROM reconciliation.used AS used
UNION ALL BY NAME
SELECT 'billing' AS side, billed.*, hash(billed.connection, billed.key) AS hash
FROM reconciliation.billed AS billed
WHERE billed.key IS NOT NULL AND (billed.apart IS NULL OR billed.apart = 'credit note')
