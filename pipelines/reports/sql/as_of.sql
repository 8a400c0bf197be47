-- End of the oldest read of the lists that are compared; NULL where one was never read.
SELECT if(count(proofs.as_of) = count(*), min(proofs.as_of), NULL) AS as_of
FROM proofs
WHERE proofs.is_compared
