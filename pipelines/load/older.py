"""Brings rows that were loaded by other rules up to the rules and declared types of now.

Here: which streams have such rows. Not here: how their rows are read again (`reread.py`).
"""

from collections.abc import Mapping

import duckdb

from pipelines.config.settings import Stream
from pipelines.config.types import DeclaredType
from pipelines.load.history import create_views
from pipelines.load.paths import field_of
from pipelines.load.reread import read_again
from pipelines.load.schema import Schema
from pipelines.load.schema_table import read_places, write_schema

HAS_COLUMNS = """
SELECT count(*) FROM duckdb_tables() AS tables
WHERE tables.database_name = current_database()
    AND (tables.schema_name, tables.table_name) = ('meta', 'columns')
"""
SELECT_STREAMS = "SELECT DISTINCT columns.stream FROM meta.columns AS columns ORDER BY ALL"
IS_OLDER = """
SELECT count(*) > 0 FROM meta.columns AS columns
WHERE columns.stream = ? AND columns.candidates IS NULL
"""


def read_older_rows(
    db: duckdb.DuckDBPyConnection, streams: Mapping[str, Stream], *, declare: bool
) -> set[str]:
    """Read rows of `history` again that were loaded by other rules; return their tables.

    Those of an older partner-sync are: their columns have no candidates in meta.columns. With
    `declare`, also those of columns whose type in settings is another one than they have.
    """
    tables = set[str]()
    if db.execute(HAS_COLUMNS).fetchall() == [(0,)]:
        return tables
    for (name,) in db.execute(SELECT_STREAMS).fetchall():
        schema = Schema(name, places=read_places(db, name))
        applied = _applied_types(schema)
        wanted = _wanted_types(schema, streams.get(name)) if declare else applied
        ((is_older,),) = db.execute(IS_OLDER, [name]).fetchall()
        if is_older or wanted != applied:
            db.begin()
            read_again(db, schema, wanted)
            write_schema(db, schema)
            for table in schema.tables:
                create_views(db, schema, table)
                tables.add(table.table)
            db.commit()
    return tables


def _applied_types(schema: Schema) -> dict[str, DeclaredType]:
    """Return the declared types that columns have already, by field."""
    applied = {}
    for place in schema.places.values():
        if place.declared is not None:
            applied[field_of(place.path)] = place.declared
    return applied


def _wanted_types(schema: Schema, stream: Stream | None) -> dict[str, DeclaredType]:
    """Return the types that settings declare for columns of single values, by field."""
    if stream is None:
        return {}
    wanted = {}
    for path, place in schema.places.items():
        field = field_of(path)
        if place.is_scalar and field in stream.types:
            wanted[field] = stream.types[field]
    return wanted
