"""What finance reads: one report a file, each a table of the schema `reports`.

To add one: a new file here that declares one `Report`, and a heading in docs/reports.md.
Publication writes the tables (`write`); the HTML page (run/reporting), the Dagster group `reports`
and exports derive from `REPORTS`.
"""

import duckdb

from pipelines.reports.base import Chart, Column, Report, make, reasons
from pipelines.shelf import members
from pipelines.warehouse.database import fill, literal, together

__all__ = ["REPORTS", "Chart", "Column", "Report", "write"]

REPORTS = members(__name__, __path__, Report)
CONTENTS = {
    "report": "the table beside this one",
    "title": "what it is called where people read it",
    "question": "what it answers",
    "rows": "how many rows it has",
    "not_evaluated": "what it cannot say and why; empty: nothing is left out",
}


def write(database: duckdb.DuckDBPyConnection) -> None:
    """Write every report anew, from the tables of this very publication; within its transaction.

    A report whose tables are not there has one row that says so.
    """
    together(database, ("DROP SCHEMA IF EXISTS reports CASCADE", "CREATE SCHEMA reports"))
    unsaid = reasons(database)
    rows = [(each, *make(database, each, unsaid)) for each in REPORTS]
    database.execute(
        "CREATE TABLE reports.contents (report VARCHAR, title VARCHAR, question VARCHAR, "
        "rows BIGINT, not_evaluated VARCHAR)"
    )
    told = [(each.name, each.title, each.question, count, why) for each, count, why in rows]
    fill(database, "reports.contents", told)
    words = "the reports of this file, and what each of them cannot say"
    columns = (f"COLUMN reports.contents.{name} IS {literal(CONTENTS[name])}" for name in CONTENTS)
    said = (f"TABLE reports.contents IS {literal(words)}", *columns)
    together(database, (f"COMMENT ON {each}" for each in said))
