-- kind: TEMP VIEW
-- Rows of usage and lines of bills that are compared: those of which it can be read with which.
SELECT 'usage' AS side, used.*, hash(used.connection, used.key) AS hash
FROM temp.used AS used
WHERE NOT coalesce(list_has_any(string_split(used.unread, ','), getvariable('key_roles')), false)
UNION ALL BY NAME
SELECT 'billing' AS side, billed.*, hash(billed.connection, billed.key) AS hash
FROM temp.billed AS billed
WHERE billed.key IS NOT NULL AND (billed.apart IS NULL OR billed.apart = 'credit note')
    AND NOT coalesce(
        list_has_any(string_split(billed.unread, ','), getvariable('key_roles')), false
    )
