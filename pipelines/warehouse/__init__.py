"""Here: DuckDB files of versions and books, their formats, and the symlinks to the published ones.

Not here: what is in them (load, versions, finance).
"""
