"""Here: versions of the warehouse: build, publish, roll back, prune, erase; exports.

Not here: what finance makes of a version (finance).

- `build.py` makes a version, `publish.py` publishes it and deletes older ones, `rollback.py` goes
  back. `change.py` has their lock, and rows of versions; `version_scans.py` which scans each holds.
- `prune.py` deletes by age. `erase.py` deletes records with a value (`identifier.py`), which
  `search.py` finds (`raw_records.py`, `spellings.py`).
- `catalog.py` writes what a version says of itself. `export_table.py` and `export_xlsx.py` read and
  write tables for exports.
"""
