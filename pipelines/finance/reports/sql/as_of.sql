-- End of the oldest read of the lists that are compared, of those that were read.
-- needs: proofs
SELECT min(proofs.as_of) AS as_of
FROM proofs
WHERE proofs.is_compared
