"""`meta.dictionary`: every table and column of the published file, and where it comes from.

Also the comments of the data columns: the JSON path, where the interface description says nothing.
Not here: the texts of our own tables and columns (comments), those of the description (interface).
"""

from typing import Any

import duckdb

from pipelines.warehouse import awaiting, evolution, registry
from pipelines.warehouse.columns import sources
from pipelines.warehouse.database import exists, fill, literal, quoted, together

SOURCES = """
CREATE OR REPLACE TEMP TABLE column_sources (
    stream VARCHAR, table_name VARCHAR, column_name VARCHAR, path VARCHAR, words VARCHAR
)
"""
UNSAID = """
SELECT table_name, column_name, words FROM column_sources
JOIN duckdb_columns() USING (table_name, column_name)
WHERE schema_name = 'current' AND comment IS NULL ORDER BY ALL
"""
COLUMNS = """
SELECT table_name AS "table", column_name AS "column", data_type AS type, path AS source
FROM column_sources JOIN duckdb_columns() USING (table_name, column_name)
WHERE schema_name = 'current' AND coalesce(stream = $stream, true)
ORDER BY table_name, column_index
"""
INHERITED = """
SELECT child.table_name, child.column_name, parent.comment
FROM duckdb_columns() AS child JOIN duckdb_columns() AS parent
  ON child.schema_name = parent.schema_name AND child.column_name = parent.column_name
  AND parent.table_name = split_part(child.table_name, '__', 1)
WHERE child.schema_name = 'current' AND child.comment IS NULL AND parent.comment IS NOT NULL
  AND parent.table_name <> child.table_name ORDER BY ALL
"""
TABLE = """
CREATE TABLE IF NOT EXISTS meta.dictionary (
    schema_name VARCHAR, table_name VARCHAR, column_name VARCHAR, type VARCHAR, source VARCHAR,
    first_manifest VARCHAR, description VARCHAR
)
"""
DICTIONARY = """
INSERT INTO meta.dictionary
WITH first AS (
    SELECT table_name, column_name, arg_min(manifest, happened_at) AS manifest
    FROM meta.schema_changes WHERE what IN ('new', 'text') GROUP BY ALL
), described AS (
    SELECT schema_name, table_name, NULL AS column_name, NULL AS column_index, 'TABLE' AS type,
           comment
    FROM duckdb_tables() WHERE NOT internal
    UNION ALL
    SELECT schema_name, view_name, NULL, NULL, 'VIEW', comment
    FROM duckdb_views() WHERE NOT internal
    UNION ALL
    SELECT schema_name, table_name, column_name, column_index, data_type, comment
    FROM duckdb_columns() WHERE NOT internal
)
SELECT schema_name, table_name, column_name, type,
       CASE WHEN schema_name IN ('current', 'past', 'history') THEN path END AS source,
       CASE WHEN schema_name IN ('current', 'past', 'history') THEN manifest END AS first_manifest,
       comment AS description
FROM described
LEFT JOIN column_sources USING (table_name, column_name)
LEFT JOIN first USING (table_name, column_name)
WHERE schema_name IN (
    'current', 'past', 'history', 'quarantine', 'meta', 'reconciliation', 'reports'
)
ORDER BY schema_name, table_name, column_index NULLS FIRST
"""


def describe(database: duckdb.DuckDBPyConnection) -> None:
    """Comment on every data column that has no comment: where it comes from.

    Our own tables are made here too, for comments that come later.
    """
    _list(database)
    evolution.prepare(database)
    awaiting.prepare(database)
    database.execute(TABLE)
    for query in (UNSAID, INHERITED):  # a parent's key has its comment then
        found = database.execute(query).fetchall()
        said = [(quoted("current", table, column), words) for table, column, words in found]
        together(
            database, (f"COMMENT ON COLUMN {name} IS {literal(words)}" for name, words in said)
        )


def tell(database: duckdb.DuckDBPyConnection) -> None:
    """Write `meta.dictionary` as the tables and their comments are now."""
    _list(database)
    database.execute("DELETE FROM meta.dictionary")
    database.execute(DICTIONARY)
    database.execute("DROP TABLE column_sources")


def columns(database: duckdb.DuckDBPyConnection, stream: str | None) -> list[dict[str, Any]]:
    """Return the data columns of a stream's current tables, or of all: type and JSON path."""
    _list(database)
    return list(database.execute(COLUMNS, {"stream": stream}).to_arrow_table().to_pylist())


def _list(database: duckdb.DuckDBPyConnection) -> None:
    """List the source of every data column in a table of this connection."""
    database.execute(SOURCES)
    streams = (
        database.execute("SELECT DISTINCT stream FROM meta.registry ORDER BY ALL").fetchall()
        if exists(database, "meta", "registry")
        else []
    )
    rows = [
        [stream, *where, source.path, source.words]
        for (stream,) in streams
        if (known := registry.registered(database, stream)) is not None
        for where, source in sources(stream, known.names).items()
    ]
    fill(database, "column_sources", rows)
