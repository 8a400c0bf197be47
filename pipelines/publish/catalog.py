"""Writes schema `meta`: what a version is made of and what is known of it; and all comments."""

from importlib.resources import files
from typing import Any, Final

import duckdb
import pyarrow as pa
from sqlalchemy import JSON, ColumnElement, String, cast, select

from pipelines.core.text import printable, quote_identifier
from pipelines.metadata.engine import Metadata
from pipelines.metadata.tables import Base

VIEWS: Final = """
CREATE OR REPLACE VIEW meta.completeness AS
SELECT loads.* EXCLUDE (day, valid_time, new, changed, deleted, unchanged, quarantined)
    RENAME (key AS primary_key)
FROM meta.loads AS loads;
CREATE OR REPLACE VIEW meta.freshness AS
SELECT
    loads.connection,
    loads.stream,
    max_by(loads.scan_id, loads.valid_time) AS last_scan_id,
    max_by(loads.ended_at, loads.valid_time) AS last_scan_ended_at,
    max_by(loads.complete, loads.valid_time) AS last_scan_complete,
    max_by(loads.scan_id, loads.valid_time) FILTER (loads.complete) AS last_complete_scan_id,
    max_by(loads.ended_at, loads.valid_time) FILTER (loads.complete) AS last_complete_at,
    max_by(loads.rows, loads.valid_time) FILTER (loads.complete) AS rows,
    date_diff('minute', last_complete_at, now()) AS age_minutes
FROM meta.loads AS loads
GROUP BY loads.connection, loads.stream;
"""
# Tables of the metadata database that a version shows, without what only this program needs.
HIDDEN: Final = {"owner", "sha256"}
SHOWN: Final[dict[str, list[ColumnElement[Any]]]] = {
    name: [
        cast(column, String).label(column.name) if isinstance(column.type, JSON) else column
        for column in Base.metadata.tables[name].columns
        if column.name not in HIDDEN
    ]
    for name in ("runs", "findings", "decisions", "versions")
}
# What tables, views and columns mean. A column is looked up as `table.column`, `schema.*.column`,
# or by its name, which means the same in all other tables. Names before one colon share its text.
COMMENTS: Final = {
    key: text
    for line in files("pipelines.publish").joinpath("comments.txt").read_text("utf-8").splitlines()
    for keys, _, text in [line.partition(": ")]
    for key in keys.split()
}
ARROW_TYPES: Final = {
    str: pa.string(),
    int: pa.int32(),
    bool: pa.bool_(),
    object: pa.timestamp("us", tz="UTC"),  # what SQLAlchemy says of UtcTime
}
# Each table of history has a macro. (To list all functions takes longer than this query.)
UNCOMMENTED: Final = """
SELECT bare.kind, bare.schema_name, bare.name, bare.column_name, held.path, held.part
FROM (
    SELECT 'TABLE' AS kind, tables.table_name AS name, tables.* FROM duckdb_tables() AS tables
    UNION ALL BY NAME
    SELECT 'VIEW' AS kind, views.view_name AS name, views.* FROM duckdb_views() AS views
    UNION ALL BY NAME
    SELECT 'COLUMN' AS kind, columns.table_name AS name, columns.* FROM duckdb_columns() AS columns
    UNION ALL BY NAME
    SELECT 'MACRO TABLE' AS kind, tables.table_name || '_as_of' AS name,
        tables.* REPLACE (NULL AS comment)
    FROM duckdb_tables() AS tables
    WHERE tables.schema_name = 'history'
) AS bare
LEFT JOIN meta.columns AS held
    ON held.table_name = bare.name AND held.column_name = bare.column_name
    AND bare.schema_name IN ('history', 'current')
WHERE bare.database_name = current_database() AND bare.comment IS NULL AND NOT bare.internal
"""


def write_state(db: duckdb.DuckDBPyConnection, metadata: Metadata) -> None:
    """Write what the metadata database says now, the views, and comments on everything new."""
    with metadata.transaction() as session:
        found = {
            table: session.execute(select(*columns).order_by(*columns[:4])).mappings().all()
            for table, columns in SHOWN.items()  # whose keys are their first columns
        }
    db.begin()  # one commit waits for the disk once
    for table, rows in found.items():
        columns = [(each.name, ARROW_TYPES[each.type.python_type]) for each in SHOWN[table]]
        db.register("shown", pa.Table.from_pylist(rows, pa.schema(columns)))
        db.execute(f"CREATE OR REPLACE TABLE meta.{table} AS FROM shown")
    db.execute(VIEWS)
    comment(db)
    db.commit()


def comment(db: duckdb.DuckDBPyConnection) -> None:
    """Comment on everything in the current database that has no comment yet."""
    # In one call: DuckDB needs half as much again for 450 calls of one statement.
    db.execute(";".join(_comment(*each) for each in db.execute(UNCOMMENTED).fetchall()))


def _comment(kind: str, *parts: str) -> str:
    """Return the statement that comments on something: a row of UNCOMMENTED."""
    name = ".".join(quote_identifier(part) for part in parts[:3] if part)
    text = _text(kind, *parts).replace("'", "''")
    return f"COMMENT ON {kind} {name} IS '{text}'"


def _text(  # noqa: PLR0913, PLR0917 - a row of UNCOMMENTED
    kind: str, schema: str, table: str, column: str | None, path: str | None, part: str | None
) -> str:
    """Return what a table, view, macro or column means; empty for one of ours without a text.

    A column of a record holds a part of the field at `path`.
    """
    stream, _, array = table.partition("__")
    keys = [f"{schema}.array" if array else schema]
    if kind == "MACRO TABLE":
        keys, stream = ["as_of"], table.removesuffix("_as_of")
    elif column is not None and (column.startswith("_") or schema not in COMMENTS):
        keys = [f"{table}.{column}", f"{schema}.*.{column}", column]
    elif column is not None:  # of a record
        keys = [f"__{part}", "field"]
    elif schema not in COMMENTS:
        keys = [f"{schema}.{table}", f"{schema}.read"]
    text = next((COMMENTS[key] for key in keys if key in COMMENTS), "")
    field = printable((path or "").removeprefix("$."))  # no statement may contain a NUL
    return text.format(stream=stream, array=array, field=field)
