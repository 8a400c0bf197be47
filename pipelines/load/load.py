"""Loads one sealed scan into the tables of a version that is being built."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow as pa

from pipelines.archive.scan_file import SealedScan
from pipelines.core.errors import LoadFailed
from pipelines.core.finding import Finding
from pipelines.core.text import printable
from pipelines.load import journal
from pipelines.load.arrow import decide
from pipelines.load.columns import (
    CREATE_COLUMNS,
    Types,
    column_types,
    list_tables,
    name_columns,
    read_schema,
    write_schema,
)
from pipelines.load.decode import Decoder
from pipelines.load.delta import compare, current_digests
from pipelines.load.findings import LoadPolicy, Outcome, list_findings, reason_to_hold
from pipelines.load.flatten import flatten
from pipelines.load.history import CREATE_ROWS, History
from pipelines.load.stage import Stage
from pipelines.load.target import Target

__all__ = ["LoadPolicy", "LoadResult", "load_scan"]

TICK = timedelta(microseconds=1)
CREATE = (
    *(
        f"CREATE SCHEMA IF NOT EXISTS {name}"
        for name in ("history", "current", "quarantine", "meta")
    ),
    CREATE_COLUMNS,
    journal.CREATE_LOADS,
    journal.CREATE_QUARANTINE,
    CREATE_ROWS,
)
DATABASE_FILE = """
SELECT databases.path
FROM duckdb_databases() AS databases
WHERE databases.database_name = current_database()
"""


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
    header = target.header
    if journal.is_loaded(target):
        return LoadResult(header.scan_id)
    schema = read_schema(target)
    known = column_types(list_tables(schema.root, header.stream))
    schema.grows = policy.contract != "discard" or not known
    decoder = Decoder(schema, target.scan.completeness.memory.key)
    with Stage(decoder, current_digests(target), _folder(target.db)) as stage:
        stage.read(target.scan)
        decide(schema.root)
        name_columns(schema.root, header.stream, header.scan_id)
        outcome = _compare(target, stage, known)
        held = reason_to_hold(outcome, policy)
        counts = {} if held else _write(target, outcome)
        findings = list_findings(outcome, held)
        return LoadResult(header.scan_id, **counts, held=held, findings=findings)


def _compare(target: Target, stage: Stage, known: Types) -> Outcome:
    types = column_types(list_tables(stage.decoder.schema.root, target.header.stream))
    delta, last = compare(target, stage), journal.last_load(target)
    return Outcome(target.scan, stage, delta, last, known, types)


def _write(target: Target, outcome: Outcome) -> dict[str, int]:
    """Write what a scan changes; return what that is, in rows."""
    stage, delta, stream = outcome.stage, outcome.delta, target.header.stream
    root, time = stage.decoder.schema.root, target.scan.completeness.ended_at
    if outcome.last is not None:
        time = max(time, outcome.last.valid_time + TICK)
    history = History(target, list_tables(root, stream), time)
    is_first = outcome.last is None or not all(table.data for table in history.tables)
    if is_first or outcome.new_types:
        history.prepare(outcome.known)
    for part in stage.parts(delta.dropped):
        flat = flatten(part, root, stream)
        scan_ids = pa.repeat(target.scan.scan_id, len(part.records))
        flat[stream] = flat[stream].append_column("_scan_id", scan_ids)
        history.insert(flat, has_changed=delta.changed > 0)
    changed = delta.changed - len(history.same)
    history.end(changed + delta.deleted)
    history.check()
    counts = {
        "new": delta.new,
        "changed": changed,
        "deleted": delta.deleted,
        "unchanged": int(stage.is_seen.sum()) + len(history.same),
        "quarantined": len(stage.quarantined),
    }
    journal.write_quarantine(target, stage.quarantined)
    journal.write_load(target, time, counts)
    write_schema(target, history.tables)
    return counts


def _remedy(error: Exception) -> str:
    if isinstance(error, duckdb.OperationalError | OSError):  # no room, no memory, a bad disk
        return "Make room or raise the memory limit, then run `partner-sync versions build`."
    return "Report this defect of partner-sync with the scan file."


def _folder(db: duckdb.DuckDBPyConnection) -> str | None:
    """Return the folder of the database, which has room for large files; None in memory."""
    path = db.execute(DATABASE_FILE).fetchall()[0][0]
    return str(Path(path).parent) if path else None
