"""Reads the lines of the bills that the page lists.

Books do not store lines. Views read them from the version, by the mapping of the books.
"""

from typing import Any, Final

import duckdb

from pipelines.core.text import quote_text
from pipelines.finance.mapping import parse_mapping
from pipelines.finance.reconcile.views import create_row_views

# 20,000 lines take about half a megabyte of the page.
MOST_LINES: Final = 20_000
MAPPING: Final = "SELECT books.mapping FROM meta.books AS books"
SETTINGS: Final = ("search_path", "TimeZone")
LISTED: Final = """
SELECT bills.connection, bills._key, bills.place, bills.lines_before
FROM listed_bills AS bills
"""


def read_lines(db: duckdb.DuckDBPyConnection, query: str, macro: str) -> dict[str, list[Any]]:
    """Return the columns of the lines of the first bills of table `listed_bills`.

    At most `MOST_LINES`; `macro` creates what the query calls. Raises duckdb.Error.
    """
    listed = db.execute(LISTED).to_arrow_table()
    # The views of rows have names that tables of the report have: they need their own connection.
    with db.cursor() as rows:
        for name in SETTINGS:
            ((value,),) = db.execute(f"SELECT current_setting({quote_text(name)})").fetchall()
            rows.execute(f"SET {name} = {quote_text(value)}")
        ((mapping,),) = rows.execute(MAPPING).fetchall()
        create_row_views(rows, parse_mapping(mapping))
        rows.execute(macro)
        rows.from_arrow(listed).query("listed", "CREATE TEMP TABLE listed_bills AS FROM listed")
        columns: dict[str, list[Any]] = (
            rows.execute(query, {"most": MOST_LINES}).to_arrow_table().to_pydict()
        )
        return columns
