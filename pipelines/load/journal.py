"""What was loaded and what was not: tables meta.loads and quarantine.records."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import duckdb
import pyarrow as pa

from pipelines.archive.scan_file import SealedScan
from pipelines.load.stage import Quarantined

CREATE_LOADS = """
CREATE TABLE IF NOT EXISTS meta.loads (
    scan_id VARCHAR, connection VARCHAR, stream VARCHAR, day DATE,
    started_at TIMESTAMP WITH TIME ZONE, ended_at TIMESTAMP WITH TIME ZONE,
    valid_time TIMESTAMP WITH TIME ZONE, key VARCHAR,
    complete BOOLEAN, method VARCHAR, rows BIGINT, repeated BIGINT, not_seen BIGINT,
    requests BIGINT, reason VARCHAR, sentence VARCHAR,
    new BIGINT, changed BIGINT, deleted BIGINT, unchanged BIGINT, quarantined BIGINT
)
"""
CREATE_QUARANTINE = """
CREATE TABLE IF NOT EXISTS quarantine.records (
    stream VARCHAR, connection VARCHAR, scan_id VARCHAR, page INTEGER, row INTEGER,
    key VARCHAR, reason VARCHAR, raw VARCHAR
)
"""
SELECT_LOADED = """
SELECT count(*)
FROM meta.loads AS loads
WHERE loads.scan_id = $scan_id
"""
SELECT_LAST = """
SELECT loads.valid_time, loads.key
FROM meta.loads AS loads
WHERE loads.connection = $connection AND loads.stream = $stream
ORDER BY loads.valid_time DESC
LIMIT 1
"""
INSERT_LOAD = """
INSERT INTO meta.loads VALUES (
    $scan_id, $connection, $stream, $day, $started_at, $ended_at, $valid_time, $key,
    $complete, $method, $rows, $repeated, $not_seen, $requests, $reason, $sentence,
    $new, $changed, $deleted, $unchanged, $quarantined
)
"""
# What a PARTIAL scan did not see stays in quarantine.
DELETE_QUARANTINE = """
DELETE FROM quarantine.records
WHERE records.stream = $stream AND records.connection = $connection
    AND ($complete OR records.raw IN (SELECT added.raw FROM load_quarantine AS added))
"""
INSERT_QUARANTINE = """
INSERT INTO quarantine.records BY NAME
SELECT added.*
FROM load_quarantine AS added
"""


class LastLoad(NamedTuple):
    """The newest load of a list: its time of changes and the primary key."""

    valid_time: datetime
    key: str | None


class Counts(NamedTuple):
    """What a load did, in rows."""

    new: int
    changed: int
    deleted: int
    unchanged: int
    quarantined: int


def is_loaded(db: duckdb.DuckDBPyConnection, scan: SealedScan) -> bool:
    """Return whether a scan was loaded before."""
    return bool(db.execute(SELECT_LOADED, {"scan_id": scan.scan_id}).fetchall()[0][0])


def last_load(db: duckdb.DuckDBPyConnection, scan: SealedScan) -> LastLoad | None:
    """Return the newest load of the list of a scan; None where there is none."""
    values = {"connection": scan.header.connection, "stream": scan.header.stream}
    found = db.execute(SELECT_LAST, values).fetchall()
    return LastLoad(*found[0]) if found else None


def write_load(
    db: duckdb.DuckDBPyConnection, scan: SealedScan, valid_time: datetime, counts: Counts
) -> None:
    """Add a row to meta.loads."""
    header, proof = scan.header, scan.completeness
    db.execute(
        INSERT_LOAD,
        {
            "scan_id": scan.scan_id,
            "connection": header.connection,
            "stream": header.stream,
            "day": header.day,
            "started_at": proof.started_at,
            "ended_at": proof.ended_at,
            "valid_time": valid_time,
            "key": proof.memory.key,
            "complete": proof.complete,
            "method": proof.method.value,
            "rows": proof.rows,
            "repeated": proof.repeated,
            "not_seen": proof.not_seen,
            "requests": proof.requests,
            "reason": proof.reason,
            "sentence": proof.sentence(header.stream),
            **counts._asdict(),
        },
    )


def write_quarantine(
    db: duckdb.DuckDBPyConnection, scan: SealedScan, records: Sequence[Quarantined]
) -> None:
    """Replace what earlier scans of the list have in quarantine."""
    rows = [
        {
            "stream": scan.header.stream,
            "connection": scan.header.connection,
            "scan_id": scan.scan_id,
            "page": each.page,
            "row": each.row,
            "key": each.key,
            "reason": each.reason,
            "raw": each.raw.decode(errors="replace"),
        }
        for each in records
    ]
    names = ("stream", "connection", "scan_id", "page", "row", "key", "reason", "raw")
    types = [pa.int32() if name in {"page", "row"} else pa.string() for name in names]
    schema = pa.schema(list(zip(names, types, strict=True)))
    db.register("load_quarantine", pa.Table.from_pylist(rows, schema))
    values = {"stream": scan.header.stream, "connection": scan.header.connection}
    db.execute(DELETE_QUARANTINE, {**values, "complete": scan.completeness.complete})
    db.execute(INSERT_QUARANTINE)
