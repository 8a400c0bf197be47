"""Makes books of a version from those of an earlier one: of connections that have changed since.

Books of many connections are the books of each together: every statement of reconciliation carries
the connection, and what depends on the time of the newest load of all is in views. So only
connections whose rows changed are reconciled; their rows are replaced in a copy of earlier books.

Here: which connections have changed, and whether and how both parts are put together. Not here: how
books are made, published and remembered (books).
"""

from collections.abc import Collection
from typing import Final

import duckdb

from pipelines.core.text import is_one_of
from pipelines.finance import remembered
from pipelines.warehouse.books import WHOLE, Books, BooksFolder

# Of both versions: the connections, with the version in which the rows of each last changed.
NOW: Final = "SELECT connections.connection, connections.version FROM meta.connections"
THEN: Final = "SELECT connections.connection, connections.version FROM reconciliation.connections"
# Where more have changed, books are made from nothing: no row is then deleted in the copy.
MOST_CHANGED: Final = 0.5
COLUMNS: Final = """
SELECT
    concat(columns.schema_name, '.', columns.table_name) AS name,
    list((columns.column_name, columns.data_type) ORDER BY columns.column_index) AS types,
    bool_or(columns.column_name = 'connection') AS is_by_connection
FROM duckdb_columns() AS columns
SEMI JOIN duckdb_tables() AS tables USING (database_oid, table_oid)
WHERE columns.database_name = ?
GROUP BY ALL
ORDER BY ALL
"""
# What holds for all connections: which statements were evaluated, and how values are read.
SHARED: Final = ("reconciliation.rules", "reconciliation.readings")
IS_DIFFERENT: Final = """
SELECT count(*) > 0
FROM (
    (FROM books.{table} EXCEPT ALL FROM {whole}.{table})
    UNION ALL
    (FROM {whole}.{table} EXCEPT ALL FROM books.{table})
)
"""
DELETE: Final = "DELETE FROM {whole}.{table} AS rows WHERE {is_chosen}"
INSERT: Final = "INSERT INTO {whole}.{table} FROM books.{table}"


class BooksDiffer(Exception):
    """Earlier books cannot be a part of new ones; the text says why."""


def changed_connections(
    folder: BooksFolder, books: Books, db: duckdb.DuckDBPyConnection
) -> frozenset[str] | None:
    """Return the connections whose rows are others in an open version than in earlier books.

    None: so many that books are made from nothing, or nobody can tell. Raises PartnerSyncError.
    """
    try:
        now = dict(db.execute(NOW).fetchall())
        with folder.open_alone(books) as earlier:
            then = dict(earlier.execute(THEN).fetchall())
    except duckdb.CatalogException:
        return None
    changed = frozenset(
        name for name in now.keys() | then.keys() if now.get(name) != then.get(name)
    )
    if not changed or len(changed) > MOST_CHANGED * len(now):
        return None
    return changed


def merge(db: duckdb.DuckDBPyConnection, changed: Collection[str]) -> None:
    """Replace rows of the copy of earlier books by those of open books of changed connections.

    Raises BooksDiffer where the other rows would be others in books that are made from nothing.
    """
    columns = db.execute(COLUMNS, ["books"]).fetchall()
    if "reconciliation.break_facts" not in {table for table, *_ in columns}:
        raise BooksDiffer("nothing can be evaluated")
    if columns != db.execute(COLUMNS, [WHOLE]).fetchall():
        raise BooksDiffer("columns have other types")
    for table in SHARED:
        query = IS_DIFFERENT.format(table=table, whole=WHOLE)
        if db.execute(query).fetchall() == [(True,)]:
            raise BooksDiffer(f"{table} differs")
    # A rollback undoes what was remembered.
    if not remembered.is_remembered(db, WHOLE, changed):
        raise BooksDiffer("breaks or corrections are remembered otherwise")
    # One commit writes the file once, not for each table.
    db.begin()
    for table, _types, is_by_connection in columns:
        is_chosen = is_one_of("rows.connection", changed if is_by_connection else None)
        db.execute(DELETE.format(whole=WHOLE, table=table, is_chosen=is_chosen))
        db.execute(INSERT.format(whole=WHOLE, table=table))
    db.commit()
