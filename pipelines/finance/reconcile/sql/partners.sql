-- Partners with their names, once each.
SELECT partners.connection, partners.partner, min(partners.name) AS name
FROM temp.partners AS partners
GROUP BY partners.connection, partners.partner
