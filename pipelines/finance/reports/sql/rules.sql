-- What became of each rule and table of reconciliation.
SELECT rules.* FROM reconciliation.rules AS rules
