"""The command line `partner-sync`: one file per group of verbs, each a thin door."""
