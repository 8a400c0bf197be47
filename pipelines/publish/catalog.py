"""Writes schema `meta`: what a version is made of and what is known of it; and all comments."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import duckdb
import msgspec
import pyarrow as pa
from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.archive.scan_file import Exchange, SealedScan
from pipelines.core.completeness import Ranges
from pipelines.core.finding import Finding
from pipelines.core.text import quote_identifier
from pipelines.metadata.tables import Base, Decision, FindingRow, Run, VersionRow
from pipelines.publish import tables, texts

LiveRows = Mapping[str, list[dict[str, Any]]]
LIVE: Final[tuple[type[Base], ...]] = (Run, FindingRow, Decision, VersionRow)
ROWS: Final = "partner_sync_rows"
INSERT: Final = "INSERT INTO meta.{table} BY NAME SELECT added.* FROM {rows} AS added"
BARE = """
SELECT 'TABLE' AS kind, tables.schema_name, tables.table_name, NULL AS column_name
FROM duckdb_tables() AS tables
WHERE tables.database_name = current_database() AND NOT tables.internal
    AND NOT tables.temporary AND tables.comment IS NULL
UNION ALL
SELECT 'VIEW', views.schema_name, views.view_name, NULL
FROM duckdb_views() AS views
WHERE views.database_name = current_database() AND NOT views.internal
    AND NOT views.temporary AND views.comment IS NULL
UNION ALL
SELECT 'COLUMN', columns.schema_name, columns.table_name, columns.column_name
FROM duckdb_columns() AS columns
WHERE columns.database_name = current_database() AND NOT columns.internal
    AND columns.schema_name NOT IN ('temp', 'pg_catalog') AND columns.comment IS NULL
UNION ALL
SELECT DISTINCT 'MACRO TABLE', macros.schema_name, macros.function_name, NULL
FROM duckdb_functions() AS macros
WHERE macros.database_name = current_database() AND NOT macros.internal
    AND macros.function_type = 'table_macro' AND macros.comment IS NULL
"""


def create_tables(db: duckdb.DuckDBPyConnection) -> None:
    """Create the tables of `meta` that each load adds to, where they are absent."""
    db.execute(tables.APPENDED)


def add_scan(db: duckdb.DuckDBPyConnection, scan: SealedScan, findings: Iterable[Finding]) -> None:
    """Record the requests of a scan that was loaded, and what its load had to say."""
    _insert(db, "requests", _requests(scan))
    written = ({"scan_id": scan.scan_id, **msgspec.structs.asdict(each)} for each in findings)
    _insert(db, "load_findings", written)


def live_rows(session: Session) -> LiveRows:
    """Return what the metadata database says now, by table of `meta`."""
    return {
        mapped.__tablename__: [
            _values(row)
            for row in session.scalars(select(mapped).order_by(*mapped.__mapper__.primary_key))
        ]
        for mapped in LIVE
    }


def write_state(db: duckdb.DuckDBPyConnection, live: LiveRows) -> None:
    """Write what the metadata database says now, the views, and comments on everything new."""
    db.execute(tables.REPLACED)
    for table, rows in live.items():
        _insert(db, table, rows)
    db.execute(tables.VIEWS)
    db.execute(";".join(_comments(db)) or "SELECT 1")


def find_uncommented(db: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the whole names of everything that has no comment."""
    found = db.execute(BARE).fetchall()
    return [".".join(part for part in parts if part) for _kind, *parts in found]


def _values(row: Base) -> dict[str, Any]:
    names = {column.key for column in row.__mapper__.columns} - tables.NOT_SHOWN
    values = {name: getattr(row, name) for name in names}
    return {
        name: msgspec.json.encode(value).decode() if isinstance(value, dict) else value
        for name, value in values.items()
    }


def _requests(scan: SealedScan) -> Iterator[dict[str, Any]]:
    proof = scan.completeness
    for number, exchange in scan.exchanges():
        yield {
            "scan_id": scan.scan_id,
            "connection": scan.header.connection,
            "stream": scan.header.stream,
            "page": number,
            "rows": _count(proof.used.get(number, ())),
            "rows_conflicting": _count(proof.conflicting.get(number, ())),
            **_request(exchange),
        }


def _request(exchange: Exchange) -> dict[str, Any]:
    same = ("purpose", "status", "sent_at", "received_at", "request_id", "error")
    return {name: getattr(exchange, name) for name in same} | {
        "requested_offset": exchange.offset,
        "requested_limit": exchange.limit,
        "bytes": None if exchange.body is None else len(exchange.body),
    }


def _count(ranges: Ranges) -> int:
    return sum(end - first for first, end in ranges)


def _insert(db: duckdb.DuckDBPyConnection, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    if not (listed := list(rows)):
        return
    db.register(ROWS, pa.Table.from_pylist(listed))
    try:
        db.execute(INSERT.format(table=table, rows=ROWS))
    finally:
        db.unregister(ROWS)


def _comments(db: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Yield a statement for each table, view, macro and column that has no comment yet."""
    for kind, schema, table, column in db.execute(BARE).fetchall():
        name = ".".join(quote_identifier(part) for part in (schema, table, column) if part)
        text = _of_column(schema, table, column) if column else _of_table(schema, table, kind)
        escaped = text.replace("'", "''")
        yield f"COMMENT ON {kind} {name} IS '{escaped}'"


def _of_table(schema: str, table: str, kind: str) -> str:
    if kind == "MACRO TABLE":
        return texts.AS_OF.format(table=table.removesuffix("_as_of"))
    if text := texts.TEXTS.get(f"{schema}.{table}"):
        return text
    stream, _, array = table.partition("__")
    of_items, of_records = texts.OF_LISTS.get(schema, (texts.OTHER, texts.OTHER))
    return (of_items if array else of_records).format(schema=schema, table=stream, array=array)


def _of_column(schema: str, table: str, column: str) -> str:
    if text := texts.TEXTS.get(f"{schema}.{table}.{column}"):
        return text
    if schema not in texts.OF_LISTS or column.startswith("_"):
        return texts.TEXTS.get(column, texts.FIELD.format(column=column))
    head, _, tail = column.rpartition("__")
    text = {"offset": texts.OFFSET, "count": texts.COUNT}.get(tail) if head else None
    return text.format(column=head) if text else texts.FIELD.format(column=column)
