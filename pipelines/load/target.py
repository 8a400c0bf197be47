"""The list that a scan is loaded into: its statements, its earlier loads, its quarantine."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import asdict

from pipelines.archive.lines import Exchange
from pipelines.archive.scan_file import SealedScan
from pipelines.core import stop
from pipelines.core.completeness import Ranges
from pipelines.core.finding import Finding
from pipelines.core.text import quote_identifier

CREATE_LOADS = """
CREATE TABLE IF NOT EXISTS meta.loads (
    scan_id VARCHAR, connection VARCHAR, stream VARCHAR, day DATE,
    started_at TIMESTAMP WITH TIME ZONE, ended_at TIMESTAMP WITH TIME ZONE,
    valid_time TIMESTAMP WITH TIME ZONE, key VARCHAR,
    complete BOOLEAN, method VARCHAR, rows BIGINT, repeated BIGINT, not_seen BIGINT,
    requests BIGINT, reason VARCHAR, sentence VARCHAR,
    new BIGINT, changed BIGINT, deleted BIGINT, unchanged BIGINT, quarantined BIGINT,
    chains BIGINT
)
"""
CREATE_QUARANTINE = """
CREATE TABLE IF NOT EXISTS quarantine.records (
    stream VARCHAR, connection VARCHAR, scan_id VARCHAR, page INTEGER, row INTEGER,
    key VARCHAR, reason VARCHAR, raw VARCHAR
)
"""
CREATE_REQUESTS = """
CREATE TABLE IF NOT EXISTS meta.requests (
    scan_id VARCHAR, connection VARCHAR, stream VARCHAR, page BIGINT, purpose VARCHAR,
    requested_offset BIGINT, requested_limit BIGINT, status BIGINT, sent_at TIMESTAMPTZ,
    received_at TIMESTAMPTZ, request_id VARCHAR, rows BIGINT, rows_conflicting BIGINT,
    bytes BIGINT, error VARCHAR
)
"""
CREATE_FINDINGS = """
CREATE TABLE IF NOT EXISTS meta.load_findings (
    scan_id VARCHAR, code VARCHAR, severity VARCHAR, connection VARCHAR, stream VARCHAR,
    subject VARCHAR, message VARCHAR, remedy VARCHAR, blocks BOOLEAN
)
"""
CREATE_TABLES = (CREATE_LOADS, CREATE_QUARANTINE, CREATE_REQUESTS, CREATE_FINDINGS)
NAMES = ("page", "purpose", "status", "sent_at", "received_at", "request_id", "error")
# What header, proof and result of a load say besides; all else has a column of meta.loads.
NOT_LOADED = {
    *("run_id", "path", "actor", "configured_key", "traits", "page_size", "algorithm"),
    *("base_url", "passes", "format", "used", "conflicting", "erased"),
    *("cached_seconds", "service_started_at", "service_ended_at", "held", "tables", "findings"),
}
# What a PARTIAL scan did not see stays in quarantine.
DELETE_QUARANTINE = """
DELETE FROM quarantine.records
WHERE records.stream = $stream AND records.connection = $connection
    AND ($complete OR list_contains($raws::VARCHAR[], records.raw))
"""


class Row(Struct):
    """A record that is not current. `reason` says why it is in quarantine.

    `key` is None before it is read, and where it cannot be read.
    """

    key: str | None
    digest: int
    page: int
    row: int
    raw: bytes
    reason: str = ""


@dataclass(frozen=True)
class Target:
    """A version that is being built, and the scan that is loaded into it."""

    db: duckdb.DuckDBPyConnection
    scan: SealedScan

    def execute(self, query: str, table: str | None = None, **values: Any) -> Any:
        """Run a statement; return the cursor.

        It may be interrupted: nobody sees the version yet.

        `{history}` becomes the table (default: the stream's own), `{name}` the value of that name
        as it is. `$name` is bound; connection, stream and scan_id have values always. `added` is an
        Arrow table, which the statement may read once.
        """
        stop.raise_if_requested()
        added: pa.Table | None = values.pop("added", None)
        if added is not None:
            # What is registered stays until the COMMIT: a reader, which is empty by then.
            batches = iter(added.to_batches())
            self.db.register("added", pa.RecordBatchReader.from_batches(added.schema, batches))
        header = self.scan.header
        history = f"history.{quote_identifier(table or header.stream)}"
        values |= {name: getattr(header, name) for name in ("connection", "stream", "scan_id")}
        bound = {name: value for name, value in values.items() if f"${name}" in query}
        return self.db.execute(query.format(history=history, **values), bound or None)

    def run(self, query: str, table: str | None = None, **values: Any) -> list[tuple[Any, ...]]:
        """Run a statement as `execute` does; return its rows."""
        rows: list[tuple[Any, ...]] = self.execute(query, table, **values).fetchall()
        return rows

    def insert(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows. Raises LookupError, a defect, for a value that has no column.

        A column without a value is NULL.
        """
        columns = self.execute(f"SELECT * FROM {table} LIMIT 0").to_arrow_table().schema
        given = {name for row in rows for name in row}
        if unknown := sorted(given.difference(columns.names)):
            raise LookupError(
                f"Table {table} has no column {', '.join(unknown)} for a value that belongs there"
            )
        added = pa.Table.from_pylist(rows, columns)
        self.execute(f"INSERT INTO {table} SELECT added.* FROM added", added=added)

    def write_load(self, counts: dict[str, Any], valid_time: datetime) -> None:
        """Add a row to meta.loads."""
        header, proof = self.scan.header, self.scan.completeness
        values = {**asdict(header), **asdict(proof), **counts, "valid_time": valid_time}
        values |= {"key": proof.traits.key, "sentence": proof.sentence(header.stream)}
        values["started_at"], values["ended_at"] = proof.span()
        kept = {name: value for name, value in values.items() if name not in NOT_LOADED}
        self.insert("meta.loads", [kept])

    def write_findings(self, findings: Iterable[Finding]) -> None:
        """Add rows to meta.load_findings."""
        scan_id = {"scan_id": self.scan.scan_id}
        self.insert("meta.load_findings", [scan_id | asdict(each) for each in findings])

    def write_quarantine(self, records: Iterable[Row]) -> None:
        """Replace what earlier scans of the list have in quarantine."""
        header = self.scan.header
        about = {name: getattr(header, name) for name in ("stream", "connection", "scan_id")}
        rows = [{**about, **asdict(each)} for each in records]
        for each in rows:
            del each["digest"]
            each["raw"] = each["raw"].decode(errors="replace")
        complete, raws = self.scan.completeness.complete, [each["raw"] for each in rows]
        self.run(DELETE_QUARANTINE, complete=complete, raws=raws)
        self.insert("quarantine.records", rows)


def request_row(scan: SealedScan, exchange: Exchange) -> dict[str, Any]:
    """Return a request of a scan as meta.requests has it."""
    header, body = scan.header, exchange.body
    used, conflicting = scan.completeness.used, scan.completeness.conflicting
    return {
        **{name: getattr(header, name) for name in ("scan_id", "connection", "stream")},
        **{name: getattr(exchange, name) for name in NAMES},
        "requested_offset": exchange.offset,
        "requested_limit": exchange.limit,
        "rows": _count(used.get(exchange.page, ())),
        "rows_conflicting": _count(conflicting.get(exchange.page, ())),
        "bytes": None if body is None else len(body),
    }


def _count(rows: Ranges) -> int:
    return sum(end - first for first, end in rows)
