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
from pipelines.core.finding import Finding
from pipelines.core.proof import Ranges
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
CREATE_CONNECTIONS = """
CREATE TABLE IF NOT EXISTS meta.connections (connection VARCHAR, version INTEGER)
"""
CREATE_TABLES = (
    CREATE_LOADS,
    CREATE_QUARANTINE,
    CREATE_REQUESTS,
    CREATE_FINDINGS,
    CREATE_CONNECTIONS,
)
# What header, proof and result of a load say besides; all else has a column of meta.loads.
OF_HEADER_ONLY = {
    "actor",
    "algorithm",
    "base_url",
    "configured_key",
    "format",
    "page_size",
    "passes",
    "path",
    "run_id",
}
OF_PROOF_ONLY = {
    "cached_seconds",
    "conflicting",
    "erased",
    "service_ended_at",
    "service_started_at",
    "traits",
    "used",
}
OF_RESULT_ONLY = {"findings", "held", "rewrites", "tables"}
NOT_IN_LOADS = OF_HEADER_ONLY | OF_PROOF_ONLY | OF_RESULT_ONLY
# What a PARTIAL scan did not see stays in quarantine.
DELETE_QUARANTINE = """
DELETE FROM quarantine.records
WHERE records.stream = $stream AND records.connection = $connection
    AND ($complete OR list_contains($raws::VARCHAR[], records.raw))
"""


# Of earlier scans, the requests that brought no row of those that are kept. Each night adds as many
# as a list has pages; of an unchanged list, none of them is needed. The scan files have all.
DELETE_REQUESTS = """
DELETE FROM meta.requests AS requests
WHERE requests.stream = $stream AND requests.connection = $connection
    AND (requests.scan_id, requests.page) NOT IN (
        SELECT (history._scan_id, history._page)
        FROM {history} AS history
        WHERE history._connection = $connection
        UNION
        SELECT (records.scan_id, records.page)
        FROM quarantine.records AS records
        WHERE records.stream = $stream AND records.connection = $connection
    )
"""


class RawRecord(Struct):
    """A record that is not current, as it was sent. `reason` says why it is in quarantine.

    `page` and `row` say where it is in the scan. `key` is None before it is read, and where it
    cannot be read.
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
            # DuckDB keeps what is registered until the COMMIT. A reader is empty by then.
            batches = iter(added.to_batches())
            self.db.register("added", pa.RecordBatchReader.from_batches(added.schema, batches))
        history = f"history.{quote_identifier(table or self.scan.header.stream)}"
        values |= self._names
        # DuckDB refuses a value that the statement does not ask for.
        bound = {name: value for name, value in values.items() if f"${name}" in query}
        return self.db.execute(query.format(history=history, **values), bound or None)

    @property
    def _names(self) -> dict[str, str]:
        """What names the scan and its list in tables of meta."""
        header = self.scan.header
        return {
            "scan_id": header.scan_id,
            "connection": header.connection,
            "stream": header.stream,
        }

    def run(self, query: str, table: str | None = None, **values: Any) -> list[tuple[Any, ...]]:
        """Run a statement as `execute` does; return its rows."""
        rows: list[tuple[Any, ...]] = self.execute(query, table, **values).fetchall()
        return rows

    def insert(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows. Raises LookupError, a defect, for a value that has no column.

        A column without a value is NULL.
        """
        if not rows:
            return
        columns = self.execute(f"SELECT * FROM {table} LIMIT 0").to_arrow_table().schema
        given = set[str]().union(*rows)
        unknown = sorted(given.difference(columns.names))
        if unknown:
            # Arrow would drop such values silently.
            raise LookupError(
                f"Table {table} has no column {', '.join(unknown)} for a value that belongs there"
            )
        added = pa.Table.from_pylist(rows, columns)
        self.execute(f"INSERT INTO {table} SELECT added.* FROM added", added=added)

    def write_load(self, counts: dict[str, Any], valid_time: datetime) -> None:
        """Add a row to meta.loads."""
        header = self.scan.header
        proof = self.scan.completeness
        started_at, ended_at = proof.span()
        row = {
            **asdict(header),
            **asdict(proof),
            **counts,
            "valid_time": valid_time,
            "key": proof.traits.key,
            "sentence": proof.sentence(header.stream),
            "started_at": started_at,
            "ended_at": ended_at,
        }
        for name in NOT_IN_LOADS:
            row.pop(name, None)
        self.insert("meta.loads", [row])

    def write_requests(self, requests: Sequence[dict[str, Any]]) -> None:
        """Add rows to meta.requests; those of earlier scans go that brought no row.

        The rows of the scan are written before.
        """
        self.run(DELETE_REQUESTS)
        self.insert("meta.requests", requests)

    def write_findings(self, findings: Iterable[Finding]) -> None:
        """Add rows to meta.load_findings."""
        rows = [{"scan_id": self.scan.scan_id, **asdict(finding)} for finding in findings]
        self.insert("meta.load_findings", rows)

    def write_quarantine(self, records: Iterable[RawRecord]) -> None:
        """Replace what earlier scans of the list have in quarantine."""
        rows = []
        for record in records:
            row = {
                **self._names,
                "page": record.page,
                "row": record.row,
                "key": record.key,
                "reason": record.reason,
                "raw": record.raw.decode(errors="replace"),
            }
            rows.append(row)
        complete = self.scan.completeness.complete
        self.run(DELETE_QUARANTINE, complete=complete, raws=[row["raw"] for row in rows])
        self.insert("quarantine.records", rows)


def request_row(scan: SealedScan, exchange: Exchange) -> dict[str, Any]:
    """Return a request of a scan as meta.requests has it."""
    used = scan.completeness.used.get(exchange.page, ())
    conflicting = scan.completeness.conflicting.get(exchange.page, ())
    return {
        "scan_id": scan.header.scan_id,
        "connection": scan.header.connection,
        "stream": scan.header.stream,
        "page": exchange.page,
        "purpose": exchange.purpose,
        "requested_offset": exchange.offset,
        "requested_limit": exchange.limit,
        "status": exchange.status,
        "sent_at": exchange.sent_at,
        "received_at": exchange.received_at,
        "request_id": exchange.request_id,
        "rows": count_rows(used),
        "rows_conflicting": count_rows(conflicting),
        "bytes": None if exchange.body is None else len(exchange.body),
        "error": exchange.error,
    }


def count_rows(ranges: Ranges) -> int:
    """Return how many rows are in ranges of them."""
    return sum(end - first for first, end in ranges)
