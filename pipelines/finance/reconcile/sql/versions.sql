-- kind: TEMP VIEW
-- Every version of each record of usage, and of each bill.
SELECT 'usage' AS side, used.* FROM used_history AS used
UNION ALL BY NAME
SELECT 'billing' AS side, bills.* RENAME (bill AS id) FROM bills_history AS bills
