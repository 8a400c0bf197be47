-- Open breaks of a partner and currency that are not high, and add up to a material amount.
SELECT small.*, small.partner_name AS name
FROM reconciliation.small_breaks AS small
ORDER BY abs(small.difference) / small.materiality DESC, small.connection, small.partner,
    small.currency
