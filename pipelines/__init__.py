"""The sync in plain Python: from credentials to a published DuckDB file.

It knows nothing of Dagster (assets/ is that door) and nothing of the sandbox (the other side of
the wire). The floors, top to bottom, are in docs/architecture.md and held by import-linter.
"""
