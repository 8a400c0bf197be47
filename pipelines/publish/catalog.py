"""Writes schema `meta`: what a version is made of and what is known of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import msgspec
import pyarrow as pa

from pipelines.archive.scan_file import Exchange, SealedScan
from pipelines.checks.check import Finding
from pipelines.core.completeness import Ranges
from pipelines.metadata.tables import Base, Decision, FindingRow, Run, VersionRow
from pipelines.publish import meta_tables
from pipelines.publish.meta_tables import MetaTable

ARROW_TYPES: Final = {
    "VARCHAR": pa.string(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
}
COLUMNS: Final = """
SELECT columns.table_name, list(columns.column_name)
FROM duckdb_columns() AS columns
WHERE columns.database_name = current_database() AND columns.schema_name = 'meta'
GROUP BY columns.table_name
"""
NEW_ROWS: Final = "partner_sync_new_rows"
INSERT: Final = "INSERT INTO meta.{table} BY NAME SELECT new_rows.* FROM {rows} AS new_rows"
DELETE_SCAN: Final = "DELETE FROM meta.{table} WHERE scan_id = $scan_id"


@dataclass(frozen=True)
class LiveRows:
    """Rows of the metadata database that a version shows, as of its build."""

    runs: Sequence[Run]
    findings: Sequence[FindingRow]
    decisions: Sequence[Decision]
    versions: Sequence[VersionRow]


def create_tables(db: duckdb.DuckDBPyConnection) -> None:
    """Create the tables of `meta` that are absent, and columns that an older version lacks."""
    statements = ["CREATE SCHEMA IF NOT EXISTS meta"]
    statements += [table.ddl for table in meta_tables.TABLES]
    db.execute(";".join(statements))
    existing = {table: frozenset(names) for table, names in db.execute(COLUMNS).fetchall()}
    for table in meta_tables.TABLES:
        for statement in table.added(existing[table.name]):
            db.execute(statement)


def create_views(db: duckdb.DuckDBPyConnection) -> None:
    """Create the views of `meta`, over tables that loading has created."""
    db.execute(";".join(meta_tables.VIEWS))


def add_scan(db: duckdb.DuckDBPyConnection, scan: SealedScan, findings: Iterable[Finding]) -> None:
    """Record the requests of a scan that was loaded, and what its load had to say."""
    for table in meta_tables.APPENDED:
        db.execute(DELETE_SCAN.format(table=table.name), {"scan_id": scan.scan_id})
    _insert(db, meta_tables.REQUESTS, _requests(scan))
    said = ({"scan_id": scan.scan_id, **msgspec.structs.asdict(each)} for each in findings)
    _insert(db, meta_tables.LOAD_FINDINGS, said)


def replace_live_rows(db: duckdb.DuckDBPyConnection, live: LiveRows) -> None:
    """Write what the metadata database says now in place of what it said before."""
    groups: Iterable[tuple[MetaTable, Sequence[Base]]] = (
        (meta_tables.RUNS, live.runs),
        (meta_tables.FINDINGS, live.findings),
        (meta_tables.DECISIONS, live.decisions),
        (meta_tables.VERSIONS, live.versions),
    )
    for table, rows in groups:
        db.execute(f"DELETE FROM meta.{table.name}")
        _insert(db, table, (_values(table, row) for row in rows))


def _values(table: MetaTable, row: Base) -> Mapping[str, Any]:
    values = {name: getattr(row, name) for name in table.columns}
    return {
        name: msgspec.json.encode(value).decode() if isinstance(value, dict) else value
        for name, value in values.items()
    }


def _requests(scan: SealedScan) -> Iterator[Mapping[str, Any]]:
    proof = scan.completeness
    for number, exchange in scan.exchanges():
        yield _request(number, exchange) | {
            "scan_id": scan.scan_id,
            "connection": scan.header.connection,
            "stream": scan.header.stream,
            "rows": _count(proof.used.get(number, ())),
            "rows_conflicting": _count(proof.conflicting.get(number, ())),
        }


def _request(number: int, exchange: Exchange) -> dict[str, Any]:
    return {
        "page": number,
        "purpose": exchange.purpose,
        "requested_offset": exchange.offset,
        "requested_limit": exchange.limit,
        "status": exchange.status,
        "sent_at": exchange.sent_at,
        "received_at": exchange.received_at,
        "request_id": exchange.request_id,
        "bytes": None if exchange.body is None else len(exchange.body),
        "error": exchange.error,
    }


def _count(ranges: Ranges) -> int:
    return sum(end - first for first, end in ranges)


def _insert(
    db: duckdb.DuckDBPyConnection, table: MetaTable, rows: Iterable[Mapping[str, Any]]
) -> None:
    schema = pa.schema([(name, ARROW_TYPES[kind]) for name, (kind, _) in table.columns.items()])
    db.register(NEW_ROWS, pa.Table.from_pylist(list(rows), schema=schema))
    try:
        db.execute(INSERT.format(table=table.name, rows=NEW_ROWS))
    finally:
        db.unregister(NEW_ROWS)
