"""Loads one sealed scan into the tables of a version that is being built."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import duckdb

from pipelines.archive.scan_file import SealedScan
from pipelines.core.errors import LoadFailed
from pipelines.core.finding import Finding
from pipelines.core.text import printable
from pipelines.load.delta import Delta, compare, current_digests
from pipelines.load.findings import LoadPolicy, list_findings, reason_to_hold
from pipelines.load.history import CREATE_ROWS, History
from pipelines.load.schema import CREATE_COLUMNS, read_schema, write_schema
from pipelines.load.stage import Stage
from pipelines.load.target import CREATE_LOADS, CREATE_QUARANTINE, Target

__all__ = ["LoadPolicy", "LoadResult", "load_scan"]

TICK = timedelta(microseconds=1)
SCHEMAS = [
    f"CREATE SCHEMA IF NOT EXISTS {name}" for name in ("history", "current", "quarantine", "meta")
]
CREATE = (*SCHEMAS, CREATE_COLUMNS, CREATE_LOADS, CREATE_QUARANTINE, CREATE_ROWS)


@dataclass(frozen=True)
class LoadResult:
    """What loading one scan did, in rows. If `held` gives a reason, nothing was written."""

    scan_id: str
    new: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    quarantined: int = 0
    held: str | None = None
    findings: tuple[Finding, ...] = ()


def load_scan(db: duckdb.DuckDBPyConnection, scan: SealedScan, policy: LoadPolicy) -> LoadResult:
    """Load a scan in one transaction. Raises LoadFailed; the tables are then unchanged.

    Loading the same scan again touches no row. Guards run before the first write.
    """
    try:
        db.execute("BEGIN TRANSACTION")
        try:
            result = _load(Target(db, scan), policy)
            db.execute("ROLLBACK" if result.held else "COMMIT")
        except BaseException:
            with suppress(duckdb.Error):  # a COMMIT that failed has ended the transaction
                db.execute("ROLLBACK")
            raise
    except (duckdb.Error, OSError) as error:
        raise LoadFailed(
            f"Scan {scan.scan_id} of {scan.header.stream} ({scan.header.connection}) could not be "
            f"loaded: {printable(error)}. Nothing of it is loaded; the scan file keeps every "
            "record.",
            _remedy(error),
        ) from error
    return result


def _load(target: Target, policy: LoadPolicy) -> LoadResult:
    """Read what is new in the scan, compare, ask the guards, write."""
    for statement in CREATE:
        target.run(statement)
    if target.is_loaded():
        return LoadResult(target.scan.scan_id)
    schema = read_schema(target, policy.contract)
    known = schema.types()
    with Stage(target.scan, schema, current_digests(target)) as stage:
        stage.read()
        schema.decide()
        delta = compare(target, stage, known)
        held = reason_to_hold(delta, policy)
        counts = {} if held else _write(target, delta)
        findings = () if held else list_findings(delta)
        return LoadResult(target.scan.scan_id, **counts, held=held, findings=findings)


def _write(target: Target, delta: Delta) -> dict[str, int]:
    """Write what a scan changes; return what that is, in rows."""
    stage, time = delta.stage, target.scan.completeness.ended_at
    if delta.last_time is not None:
        time = max(time, delta.last_time + TICK)
    tables = [place for place in stage.schema.places.values() if place.is_table]
    history = History(target, tables, delta.types, time)
    history.prepare(delta.known)
    history.insert(stage.tables(delta.dropped))
    changed = history.end(delta)
    counts = {
        "new": delta.new,
        "changed": changed,
        "deleted": delta.deleted,
        "unchanged": int(stage.is_seen.sum()) + delta.resent - changed,
        "quarantined": len(stage.quarantined),
    }
    target.write_quarantine(stage.quarantined)
    target.write_load(valid_time=time, **counts)
    write_schema(target, stage.schema)
    return counts


def _remedy(error: Exception) -> str:
    if isinstance(error, duckdb.OperationalError | OSError):  # no room, no memory, a bad disk
        return "Make room or raise the memory limit, then run `partner-sync versions build`."
    return "Report this defect of partner-sync with the scan file."
