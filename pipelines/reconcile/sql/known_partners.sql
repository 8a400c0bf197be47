-- kind: TEMP TABLE
-- Partners with their names, once each.
SELECT partners.connection, partners.partner, min(partners.name) AS name
FROM reconciliation.partners AS partners
GROUP BY partners.connection, partners.partner
