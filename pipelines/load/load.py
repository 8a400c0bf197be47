"""Loads one sealed scan into the tables of a version that is being built."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from pipelines.archive.scan_file import SealedScan
from pipelines.checks.check import Finding
from pipelines.config.values import Contract
from pipelines.core.errors import LoadFailed
from pipelines.core.text import printable
from pipelines.load import journal
from pipelines.load.arrow import decide
from pipelines.load.columns import (
    CREATE_COLUMNS,
    Table,
    changes,
    list_tables,
    name_columns,
    read_schema,
    write_schema,
)
from pipelines.load.decode import Decoder
from pipelines.load.delta import Comparison, Delta, current_digests, has_history
from pipelines.load.findings import Outcome, list_findings
from pipelines.load.flatten import flatten
from pipelines.load.guards import Evidence, reason_to_hold
from pipelines.load.history import History
from pipelines.load.stage import Part, Stage

TICK = timedelta(microseconds=1)
CREATE = (
    *(
        f"CREATE SCHEMA IF NOT EXISTS {name}"
        for name in ("history", "current", "quarantine", "meta")
    ),
    CREATE_COLUMNS,
    journal.CREATE_LOADS,
    journal.CREATE_QUARANTINE,
)
DATABASE_FILE = """
SELECT databases.path
FROM duckdb_databases() AS databases
WHERE databases.database_name = current_database()
"""


@dataclass(frozen=True)
class LoadPolicy:
    """What a scan may do to the tables. `approved`: a person has approved this very scan."""

    contract: Contract = "evolve"
    max_deleted_share: float = 0.1
    allow_empty: bool = False
    approved: bool = False


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
            result = _load(db, scan, policy)
            db.execute("ROLLBACK" if result.held else "COMMIT")
        except BaseException:
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


def _load(db: duckdb.DuckDBPyConnection, scan: SealedScan, policy: LoadPolicy) -> LoadResult:
    for statement in CREATE:
        db.execute(statement)
    if journal.is_loaded(db, scan):
        return LoadResult(scan.scan_id)
    header, key = scan.header, scan.completeness.memory.key
    schema = read_schema(db, header.stream)
    known = Known.of(list_tables(schema.root, header.stream), exist=has_history(db, header.stream))
    schema.grows = policy.contract != "discard" or not known.types
    current = current_digests(db, header.stream, header.connection)
    with Stage(Decoder(schema, key), current, _folder(db)) as stage:
        stage.read(scan)
        decide(schema.root)
        name_columns(schema.root, header.stream, scan.scan_id)
        return _Load(db, scan, policy, stage, known).run()


@dataclass(frozen=True)
class Known:
    """Tables and types of columns before the load."""

    tables: frozenset[str]
    types: dict[tuple[str, str], str]

    @classmethod
    def of(cls, tables: list[Table], *, exist: bool) -> "Known":
        """Return what exists in the database."""
        names = frozenset(table.name for table in tables) if exist else frozenset()
        return cls(names, changes({}, tables))


@dataclass(frozen=True)
class _Load:
    """One load: what was staged against what is current."""

    db: duckdb.DuckDBPyConnection
    scan: SealedScan
    policy: LoadPolicy
    stage: Stage
    known: Known

    def run(self) -> LoadResult:
        """Compare, ask the guards, write."""
        header, stage = self.scan.header, self.stage
        tables = list_tables(stage.decoder.schema.root, header.stream)
        new_types = changes(self.known.types, tables)
        ends_rows = self.scan.completeness.complete and not stage.keyless
        comparison = Comparison(self.db, header.stream, header.connection, stage)
        delta = comparison.compare(ends_rows=ends_rows)
        stage.quarantine_conflicts(self.scan, delta.conflicting)
        last = journal.last_load(self.db, self.scan)
        held = None if self.policy.approved else self._reason_to_hold(delta, last, new_types)
        outcome = Outcome(header, stage, self.known.types, new_types, held)
        if held:
            return LoadResult(self.scan.scan_id, held=held, findings=list_findings(outcome))
        time = self.scan.completeness.ended_at
        time = time if last is None else max(time, last.valid_time + TICK)
        counts = self._write(History(self.db, tables, header.connection, time), delta, new_types)
        journal.write_quarantine(self.db, self.scan, stage.quarantined)
        journal.write_load(self.db, self.scan, time, counts)
        write_schema(self.db, header.stream, tables)
        findings = list_findings(outcome)
        return LoadResult(self.scan.scan_id, *counts, held=None, findings=findings)

    def _reason_to_hold(
        self, delta: Delta, last: journal.LastLoad | None, new_types: dict[tuple[str, str], str]
    ) -> str | None:
        key = self.scan.completeness.memory.key
        evidence = Evidence(
            delta=delta,
            rows=self.stage.rows,
            key=key,
            keyless=self.stage.keyless,
            is_first=last is None,
            had_key=None if last is None else last.key,
            is_frozen=self.policy.contract == "freeze" and bool(self.known.types),
            new_types=[".".join(names) for names in new_types],
        )
        share, allow_empty = self.policy.max_deleted_share, self.policy.allow_empty
        return reason_to_hold(evidence, share, allow_empty=allow_empty)

    def _write(
        self, history: History, delta: Delta, new_types: dict[tuple[str, str], str]
    ) -> journal.Counts:
        names = {table.name for table in history.tables}
        if new_types or not names <= self.known.tables:
            history.prepare(new_types, set(self.known.types))
        same = 0
        for part in self.stage.parts():
            same += history.write(self._flat(part), has_changed=delta.changed > 0)
        if delta.deleted:
            history.end_absent(delta.deleted)
        history.check()
        return journal.Counts(
            new=delta.new,
            changed=delta.changed - same,
            deleted=delta.deleted,
            unchanged=int(self.stage.is_seen.sum()) + same,
            quarantined=len(self.stage.quarantined),
        )

    def _flat(self, part: Part) -> dict[str, Any]:
        """Return the flat tables of a part; the stream's own also with where its rows are from."""
        stream = self.scan.header.stream
        flat = flatten(part.records, self.stage.decoder.schema.root, stream, part.keys)
        scan_id = pa.repeat(self.scan.scan_id, len(part.keys))
        own = {"_digest": part.digests, "_page": part.pages, "_row": part.rows, "_scan_id": scan_id}
        for name, column in own.items():
            flat[stream] = flat[stream].append_column(name, column)
        return flat


def _remedy(error: Exception) -> str:
    if isinstance(error, duckdb.OperationalError | OSError):  # no room, no memory, a bad disk
        return "Make room or raise the memory limit, then run `partner-sync versions build`."
    return "Report this defect of partner-sync with the scan file."


def _folder(db: duckdb.DuckDBPyConnection) -> str | None:
    """Return the folder of the database, which has room for large files; None in memory."""
    path = db.execute(DATABASE_FILE).fetchall()[0][0]
    return str(Path(path).parent) if path else None
