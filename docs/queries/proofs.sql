-- What is proven of every reading that is in the tables, in a sentence? The newest first.
SELECT connection, stream, day, grade, rows, in_force, sentence
FROM meta.proofs
ORDER BY ended_at DESC, connection, stream;
