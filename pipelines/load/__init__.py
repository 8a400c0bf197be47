"""Here: records of a scan into typed tables with history: schema, values, quarantine.

Not here: which scans are loaded, and what becomes of the version (versions).

`load.py` has the steps of a load. In the order of the data:

- `stage.py` reads the records that are not current (`records.py`), and keeps their values as they
  were sent (`values.py`). `decode.py` says where each value goes: to a place (`place.py`) of the
  schema (`schema.py`, `names.py`, `paths.py`; kept by `schema_table.py`).
- `Place.decide` gives a place its type from its values: `observe.py` looks at each,
  `whole_column.py` at all.
- `store.py` turns values into columns, `cells.py` one by one where a cast does not do. What fits no
  column goes to `_extra` (`extras.py`).
- `delta.py` compares, `findings.py` asks the guards, `history.py` writes (`target.py`).

Earlier rows follow to new types and rules by `reread.py` and `older.py`, and into the table of a
map by `maps.py` (`earlier.py`, `unpivot.py`).
"""
