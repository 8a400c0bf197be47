-- question: Does the mapping know every status and kind of the bills?
-- remedy: Run `partner-sync mapping propose`, then `partner-sync mapping accept --replace`.
SELECT
    bills.connection, bills.unseen AS value, bills.currency, count(*) AS bills,
    sum(bills.amount) AS amount, min(bills.bill) AS example,
    bool_and(bills.apart IS NULL) AS is_counted
FROM temp.bills AS bills
WHERE bills.unseen IS NOT NULL
GROUP BY bills.connection, bills.unseen, bills.currency
ORDER BY ALL
