-- From which amount on a break is high, of currencies with amounts.
-- needs: currencies
SELECT material.currency, material.amount, material.source
FROM reconciliation.materiality AS material
JOIN currencies USING (currency)
ORDER BY currencies.place
