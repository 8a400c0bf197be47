"""The views of rows that books do not store, and the views for people.

Here: views over both sides, all pairs, and schema `finance`. Not here: the statements behind them
(normalize, `sql/`), and the evaluation of rules (engine).
"""

from collections.abc import Collection
from contextlib import suppress
from typing import Final

import duckdb

from pipelines.core.text import is_one_of, quote_text
from pipelines.finance.mapping import Mapping
from pipelines.finance.reconcile.normalize import Sides
from pipelines.finance.reconcile.row_statements import VIEWS
from pipelines.finance.reconcile.statements import read_statement

# Tables and views of the books, with their column that has names of partners.
WITH_NAMES: Final = """
SELECT
    columns.table_name,
    any_value(columns.column_name) FILTER (
        columns.column_name = if(columns.table_name = 'partners', 'name', 'partner_name')
    ) AS name,
    bool_or(columns.column_name = 'connection') AS is_by_connection
FROM duckdb_columns() AS columns
WHERE (columns.database_name, columns.schema_name) = ('books', 'reconciliation')
GROUP BY columns.table_name
"""
NUMBER_OF_ROWS: Final = """
SELECT coalesce(sum(tables.estimated_size), 0)
FROM duckdb_tables() AS tables
WHERE tables.schema_name = 'history'
"""
MOST_HELD_ROWS: Final = 20_000
CONCLUSIONS: Final = ("breaks", "summary")
# What a disk refuses, now: the books before stay, instead of new ones with less in them.
PASSING: Final = (duckdb.IOException, duckdb.FatalException, duckdb.InterruptException)
CREATE_RESULT: Final = "CREATE OR REPLACE {kind} {name} AS FROM ({query})"


def create_row_views(
    db: duckdb.DuckDBPyConnection,
    mapping: Mapping,
    connections: Collection[str] | None = None,
) -> Sides:
    """Create temporary views of the rows of both sides, which books do not store.

    `partners`, `used`, `bills`, `payments`, `billed`; of some connections (None: of all). Raises
    duckdb.Error.
    """
    sides = Sides(db, mapping, connections)
    for view in VIEWS:
        db.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS {sides.query(view)}")
    return sides


def create_rows_to_compare(
    db: duckdb.DuckDBPyConnection, mapping: Mapping, connections: Collection[str] | None
) -> Sides:
    """Create these views, and those of every version of their rows: `used_history` and the like.

    They read tables in memory, if there are few rows: to plan such a view takes longer than to read
    few rows, and a dozen statements do it. Raises duckdb.Error.
    """
    sides = Sides(db, mapping, connections)
    ((rows,),) = db.execute(NUMBER_OF_ROWS).fetchall()
    for view in VIEWS:
        for name, every_version in ((view, False), (f"{view}_history", True)):
            query = sides.query(view, every_version=every_version)
            if rows <= MOST_HELD_ROWS and _can_be_read(db, f"held_{name}", query):
                query = f"FROM temp.held_{name}"
            db.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {query}")
    return sides


def _can_be_read(db: duckdb.DuckDBPyConnection, table: str, query: str) -> bool:
    """Create a temporary table of a query, unless that fails: then so do statements that read it.

    Raises duckdb.Error for what may pass.
    """
    try:
        db.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {query}")
    except PASSING:
        raise
    except duckdb.Error:
        return False
    return True


def create_pair_view(db: duckdb.DuckDBPyConnection) -> None:
    """Create temporary view `matches`: all pairs of rows, which books do not store."""
    statement = read_statement("matches")
    query = CREATE_RESULT.format(kind=statement.kind, name=statement.name, query=statement.query)
    db.execute(query)


def create_finance_views(db: duckdb.DuckDBPyConnection, failed: Collection[str] = ()) -> None:
    """Fill schema `finance`: views of reconciliation with names of partners.

    A view of a table that could not be evaluated is left out: an empty one would be an answer.
    """
    for statement in db.extract_statements(read_statement("finance").query):
        reads_failed = any(f"reconciliation.{name} AS" in statement.query for name in failed)
        if not reads_failed:
            with suppress(duckdb.CatalogException, duckdb.BinderException):
                db.execute(statement)


def hide_names(db: duckdb.DuckDBPyConnection, connections: Collection[str] | None = None) -> None:
    """Let open books have no names of partners, for as long as the connection is open.

    Views of the same names, in memory, take the place of all tables and views of the books. They
    have rows of some connections (None: of all).
    """
    db.execute("CREATE SCHEMA memory.reconciliation; CREATE SCHEMA memory.finance")
    for table, name, is_by_connection in db.execute(WITH_NAMES).fetchall():
        hidden = f"* REPLACE (NULL::VARCHAR AS {name})" if name else "*"
        query = f"SELECT {hidden} FROM books.reconciliation.{table}"
        if is_by_connection:
            query += f" WHERE {is_one_of('connection', connections)}"
        db.execute(f"CREATE VIEW memory.reconciliation.{table} AS {query}")
    ((path,),) = db.execute("SELECT current_setting('search_path')").fetchall()
    others = [each for each in path.split(",") if not each.startswith(("books.rec", "books.fin"))]
    new_path = ",".join(["memory.finance", "memory.reconciliation", *others])
    db.execute(f"SET search_path = {quote_text(new_path)}")
    create_finance_views(db)


def hold_conclusions(db: duckdb.DuckDBPyConnection) -> None:
    """Let queries read tables in memory in place of the views that follow from decisions.

    To plan such a view takes 10 ms, and some twenty queries of the report read one. Other views
    read those of the books. A view that is not there is left out. Raises duckdb.Error.
    """
    db.execute("CREATE SCHEMA IF NOT EXISTS memory.reconciliation")
    for name in CONCLUSIONS:
        with suppress(duckdb.CatalogException):
            db.execute(f"CREATE TEMP TABLE held_{name} AS FROM reconciliation.{name}")
            db.execute(
                f"CREATE OR REPLACE VIEW memory.reconciliation.{name} AS FROM temp.held_{name}"
            )
    ((path,),) = db.execute("SELECT current_setting('search_path')").fetchall()
    if "memory.reconciliation" not in path.split(","):
        db.execute(f"SET search_path = {quote_text(f'memory.reconciliation,{path}')}")
