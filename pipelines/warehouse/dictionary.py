"""`meta.dictionary`: every table and column of the published file, and where it comes from.

Also the comments of the data columns: the JSON path, where the interface description says nothing.
Not here: the texts of our own tables and columns (comments), those of the description (interface).
"""

import duckdb

from pipelines.warehouse import evolution, registry
from pipelines.warehouse.columns import sources
from pipelines.warehouse.database import exists, quoted

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
DICTIONARY = """
CREATE OR REPLACE TABLE meta.dictionary AS
WITH first AS (
    SELECT table_name, column_name, arg_min(manifest, at) AS manifest
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
WHERE schema_name IN ('current', 'past', 'history', 'quarantine', 'meta')
ORDER BY schema_name, table_name, column_index NULLS FIRST
"""


def describe(database: duckdb.DuckDBPyConnection) -> None:
    """Comment on every data column that has no comment: where it comes from."""
    _list(database)
    for table, column, words in database.execute(UNSAID).fetchall():
        name, literal = quoted("current", table, column), words.replace("'", "''")
        database.execute(f"COMMENT ON COLUMN {name} IS '{literal}'")


def tell(database: duckdb.DuckDBPyConnection) -> None:
    """Write `meta.dictionary` as the tables and their comments are now."""
    _list(database)
    evolution.prepare(database)
    database.execute(DICTIONARY)
    database.execute("DROP TABLE column_sources")


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
    if rows:
        database.executemany("INSERT INTO column_sources VALUES (?, ?, ?, ?, ?)", rows)
