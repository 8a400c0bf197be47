-- Months in which an amount is missing.
SELECT DISTINCT used.connection, used.month, used.currency
FROM temp.used AS used
WHERE used.amount IS NULL
UNION
SELECT DISTINCT bills.connection, bills.month, bills.currency
FROM temp.bills AS bills
WHERE bills.amount IS NULL AND coalesce(bills.apart, 'credit note') = 'credit note'
