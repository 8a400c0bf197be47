"""Here: usage beside billing: views of both sides, one SQL file for each rule and table, breaks.

Not here: the files of the books (warehouse, finance.books), and the page (finance.reports).

In the order of a run, which is `engine.py`:

- `basis.py` has the tables of mapping, decisions and memory.
- `roles.py` finds the column of each role, and says which roles a figure needs. `readings.py`
  reads its values (`typed_value.py`, `spelled.py`, `sent.py`), as far as they can be added
  (`room.py`).
- `normalize.py` fills them into the statements of `row_statements.py`, with months
  (`bill_months.py`), statuses and kinds (`bill_values.py`) of bills; `views.py` creates the views
  `used`, `bills` and `billed` with them. `quarantine.py` reads records in quarantine.
- `statements.py` names the files of `sql/`: tables, and a file for each rule.
- `closed_rows.py` compares closed months with their copies (`close_copy.py`). `own/` compares own
  books.

`propose.py` proposes a mapping, from `evidence.py`, `samples.py`, `names.py`, `units.py` and
`time_zones.py`; `choices.py` takes the best.
"""
