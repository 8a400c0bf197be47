"""Writes schema `meta`: what a version is made of and what is known of it; and all comments."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa
from sqlalchemy import JSON, ColumnElement, String, cast, select
from sqlalchemy.orm import Session

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
SHOWN_TABLES: Final = ("runs", "findings", "decisions", "versions")
HIDDEN: Final = {"owner", "sha256", "content"}
ARROW_TYPES: Final = {
    str: pa.string(),
    int: pa.int32(),
    bool: pa.bool_(),
    object: pa.timestamp("us", tz="UTC"),  # what SQLAlchemy says of UtcTime
}
RECORD_SCHEMAS: Final = ("history", "current")  # whose tables hold records, and their items
MACRO: Final = "MACRO TABLE"
AS_OF: Final = "_as_of"
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


def read_comments(*packages: str) -> dict[str, str]:
    """Return what tables, views and columns mean: the lines of `comments.txt` of packages.

    A column is looked up as `table.column`, `schema.*.column`, or by its name, which means the same
    in all other tables. In a file, names before one colon share its text.
    """
    comments = {}
    for package in packages:
        content = files(package).joinpath("comments.txt").read_text("utf-8")
        for line in content.splitlines():
            names, _colon, text = line.partition(": ")
            for name in names.split():
                comments[name] = text
    return comments


def write_state(db: duckdb.DuckDBPyConnection, metadata: Metadata) -> None:
    """Write what the metadata database says now, the views, and comments on everything new."""
    with metadata.transaction() as session:
        tables = {name: _read_shown(session, name) for name in SHOWN_TABLES}
    # One commit waits for the disk once.
    db.begin()
    for name, table in tables.items():
        db.register("shown", table)
        db.execute(f"CREATE OR REPLACE TABLE meta.{name} AS FROM shown")
    db.execute(VIEWS)
    comment(db, read_comments("pipelines.versions"))
    db.commit()


def _read_shown(session: Session, name: str) -> pa.Table:
    """Return the rows of a table of the metadata database, ordered by their key."""
    selected = list[ColumnElement[Any]]()
    fields = []
    for column in Base.metadata.tables[name].columns:
        if column.name in HIDDEN:
            continue
        if isinstance(column.type, JSON):
            selected.append(cast(column, String).label(column.name))
            fields.append((column.name, pa.string()))
        else:
            selected.append(column)
            fields.append((column.name, ARROW_TYPES[column.type.python_type]))
    query = select(*selected).order_by(*selected[:4])  # the key is among the first columns
    return pa.Table.from_pylist(session.execute(query).mappings().all(), pa.schema(fields))


def comment(db: duckdb.DuckDBPyConnection, comments: Mapping[str, str]) -> None:
    """Comment on everything in the current database that has no comment yet."""
    statements = [
        _statement(Uncommented(*row), comments) for row in db.execute(UNCOMMENTED).fetchall()
    ]
    # In one call: DuckDB needs half as much again for 450 calls of one statement.
    db.execute(";".join(statements))


class Uncommented(NamedTuple):
    """A table, view, macro or column without a comment: a row of UNCOMMENTED.

    A column of a record holds a part of the field at `path`.
    """

    kind: str
    schema: str
    table: str
    column: str | None
    path: str | None
    part: str | None

    @property
    def name(self) -> str:
        """The name as SQL has it."""
        names = [self.schema, self.table]
        if self.column is not None:
            names.append(self.column)
        return ".".join(quote_identifier(name) for name in names)


def _statement(thing: Uncommented, comments: Mapping[str, str]) -> str:
    text = _text(thing, comments).replace("'", "''")
    return f"COMMENT ON {thing.kind} {thing.name} IS '{text}'"


def _text(thing: Uncommented, comments: Mapping[str, str]) -> str:
    """Return what a table, view, macro or column means; empty for one of ours without a text."""
    text = ""
    for name in _names(thing):
        if name in comments:
            text = comments[name]
            break
    stream, _separator, array = thing.table.partition("__")
    if thing.kind == MACRO:
        stream = thing.table.removesuffix(AS_OF)
    # DuckDB cannot parse a statement with a NUL: a field with such a name stopped every build.
    field = printable((thing.path or "").removeprefix("$."))
    return text.format(stream=stream, array=array, field=field)


def _names(thing: Uncommented) -> list[str]:
    """Return the names by which a comment is looked up; the first one that has a text counts."""
    holds_records = thing.schema in RECORD_SCHEMAS
    if thing.kind == MACRO:
        return ["as_of"]
    if thing.column is None and holds_records:
        return [f"{thing.schema}.array" if "__" in thing.table else thing.schema]
    if thing.column is None:
        return [f"{thing.schema}.{thing.table}"]
    if holds_records and not thing.column.startswith("_"):
        return [f"__{thing.part}", "field"]
    return [
        f"{thing.table}.{thing.column}",
        f"{thing.schema}.*.{thing.column}",
        thing.column,
    ]
