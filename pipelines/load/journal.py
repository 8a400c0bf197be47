"""What was loaded and what was not: tables meta.loads and quarantine.records."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from pipelines.load.stage import Quarantined
from pipelines.load.target import Target

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
SELECT_LOADED = "SELECT count(*) FROM meta.loads AS loads WHERE loads.scan_id = $scan_id"
SELECT_LAST = """
SELECT loads.valid_time, loads.key
FROM meta.loads AS loads
WHERE loads.connection = $connection AND loads.stream = $stream
ORDER BY loads.valid_time DESC
LIMIT 1
"""
INSERT_LOAD = "INSERT INTO meta.loads BY NAME SELECT added.* FROM load_row AS added"
# What a PARTIAL scan did not see stays in quarantine.
DELETE_QUARANTINE = """
DELETE FROM quarantine.records
WHERE records.stream = $stream AND records.connection = $connection
    AND ($complete OR records.raw IN (SELECT added.raw FROM load_quarantine AS added))
"""
INSERT_QUARANTINE = """
INSERT INTO quarantine.records BY NAME
SELECT added.*, $stream AS stream, $connection AS connection, $scan_id AS scan_id
FROM load_quarantine AS added
"""
QUARANTINE = pa.schema(
    {name: pa.string() for name in Quarantined._fields} | {"page": pa.int32(), "row": pa.int32()}
)


class LastLoad(NamedTuple):
    """The newest load of a list: its time of changes and the primary key."""

    valid_time: datetime
    key: str | None


def is_loaded(target: Target) -> bool:
    """Return whether the scan was loaded before."""
    return bool(target.run(SELECT_LOADED)[0][0])


def last_load(target: Target) -> LastLoad | None:
    """Return the newest load of the list; None where there is none."""
    found = target.run(SELECT_LAST)
    return LastLoad(*found[0]) if found else None


def write_load(target: Target, valid_time: datetime, counts: Mapping[str, int]) -> None:
    """Add a row to meta.loads."""
    header, proof = target.header, target.scan.completeness
    values = {
        **msgspec.structs.asdict(header),
        **msgspec.structs.asdict(proof),
        "method": proof.method.value,
        "valid_time": valid_time,
        "key": proof.memory.key,
        "sentence": proof.sentence(header.stream),
        **counts,
    }
    row = {name: values[name] for name, *_ in target.run("DESCRIBE meta.loads")}
    target.db.register("load_row", pa.Table.from_pylist([row]))
    target.run(INSERT_LOAD)


def write_quarantine(target: Target, records: Sequence[Quarantined]) -> None:
    """Replace what earlier scans of the list have in quarantine."""
    rows: list[dict[str, Any]] = [
        {**each._asdict(), "raw": each.raw.decode(errors="replace")} for each in records
    ]
    target.db.register("load_quarantine", pa.Table.from_pylist(rows, QUARANTINE))
    target.run(DELETE_QUARANTINE, complete=target.scan.completeness.complete)
    target.run(INSERT_QUARANTINE)
