-- Codes of usage and bills that are no currency of ISO 4217.
SELECT months.currency, sum(months.used_rows)::BIGINT AS used, sum(months.bills)::BIGINT AS bills
FROM reconciliation.summary AS months
ANTI JOIN reconciliation.currencies AS known USING (currency)
WHERE months.currency IS NOT NULL
GROUP BY months.currency
ORDER BY ALL
