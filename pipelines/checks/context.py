"""What checks look at: the published version and the metadata database, read once."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime

import duckdb
from sqlalchemy.orm import Session

from pipelines.core.errors import PartnerSyncError
from pipelines.core.finding import Finding, Severity
from pipelines.core.text import printable, quote_identifier
from pipelines.metadata import runs, scans
from pipelines.metadata.engine import Metadata
from pipelines.metadata.tables import Run, Scan
from pipelines.metadata.versions import VersionStatus, list_versions
from pipelines.warehouse.protocol import Version, Warehouse

LOADED = """
SELECT
    scans.connection, scans.stream, scans.scan_id, scans.complete, scans.ended_at, scans.rows,
    scans.sentence
FROM meta.loads AS scans
ORDER BY scans.valid_time
"""
QUARANTINED = """
SELECT records.connection, records.stream, count(*)
FROM quarantine.records AS records
GROUP BY records.connection, records.stream
"""
LOAD_FINDINGS = """
SELECT
    findings.scan_id, findings.code, findings.severity, findings.connection, findings.stream,
    findings.subject, findings.message, findings.remedy, findings.blocks
FROM meta.load_findings AS findings
"""
HISTORIES = """
SELECT tables.table_name
FROM duckdb_tables() AS tables
WHERE tables.database_name = current_database() AND tables.schema_name = 'history'
"""
NOT_FITTING = """
SELECT history._connection, count(*)
FROM history.{table} AS history
WHERE history._valid_to IS NULL AND history._extra IS NOT NULL
GROUP BY history._connection
"""


class CannotKnow(Exception):
    """Raised where a check has nothing to judge by; the text says what is missing."""


@dataclass(frozen=True)
class ListName:
    """One list of one connection."""

    connection: str
    stream: str

    def __str__(self) -> str:
        return f"{self.connection}/{self.stream}"


@dataclass(frozen=True)
class LoadedScan:
    """One scan that the published version holds."""

    scan_id: str
    complete: bool
    ended_at: datetime
    rows: int
    sentence: str


@dataclass(frozen=True)
class PublishedState:
    """What the published version says. `problem` says why it cannot be read, empty if it can."""

    version: Version | None = None
    problem: str = ""
    loaded: dict[ListName, list[LoadedScan]] = field(default_factory=dict)
    quarantined: dict[ListName, int] = field(default_factory=dict)  # records
    not_fitting: dict[ListName, int] = field(default_factory=dict)  # current rows with `_extra`
    findings: dict[str, list[Finding]] = field(default_factory=dict)  # of loads, by scan


@dataclass(frozen=True)
class MetadataState:
    """What the metadata database says. `runs`: newest first, `scans`: the newest of each list."""

    scans: dict[ListName, Scan]
    held: dict[ListName, Scan]
    waiting: dict[ListName, Scan]
    runs: Sequence[Run]
    versions: list[int]  # that were published and have a file


@dataclass(frozen=True)
class CheckContext:
    """Everything that checks look at. `lists` are those that the configuration reads."""

    lists: tuple[ListName, ...]
    published: PublishedState
    metadata: MetadataState
    now: datetime
    stale_after_hours: float

    def loads(self, about: ListName) -> list[LoadedScan]:
        """Return the published scans of a list, oldest first. Raises CannotKnow."""
        if self.published.problem:
            raise CannotKnow(f"The published version cannot be read: {self.published.problem}")
        return self.published.loaded.get(about, [])

    def last_load(self, about: ListName) -> LoadedScan:
        """Return the newest published scan of a list. Raises CannotKnow."""
        if loads := self.loads(about):
            return loads[-1]
        raise CannotKnow(f"No scan of {about} is published.")

    def newest_scan(self, about: ListName) -> Scan:
        """Return the newest scan of a list that was read to its end. Raises CannotKnow."""
        if about in self.metadata.scans:
            return self.metadata.scans[about]
        raise CannotKnow(f"{about} was never read to its end.")


def read_context(
    warehouse: Warehouse,
    metadata: Metadata,
    lists: Sequence[ListName],
    now: datetime,
    stale_after_hours: float,
) -> CheckContext:
    """Read what checks look at. Raises StorageFailed where the metadata database fails."""
    published = _read_published(warehouse)
    loaded = frozenset(each.scan_id for loads in published.loaded.values() for each in loads)
    with metadata.transaction() as session:
        state = _read_metadata(session, lists, loaded)
    return CheckContext(tuple(lists), published, state, now, stale_after_hours)


def _read_metadata(
    session: Session, lists: Sequence[ListName], loaded: frozenset[str]
) -> MetadataState:
    newest = {each: scans.newest_sealed(session, each.connection, each.stream) for each in lists}
    return MetadataState(
        scans={each: scan for each, scan in newest.items() if scan is not None},
        held={_list_of(scan): scan for scan in scans.held_scans(session)},
        waiting={_list_of(scan): scan for scan in scans.buildable_scans(session, loaded)},
        runs=runs.recent_runs(session, limit=0),
        versions=[
            row.number for row in list_versions(session) if row.status == VersionStatus.PUBLISHED
        ],
    )


def _list_of(scan: Scan) -> ListName:
    return ListName(scan.connection, scan.stream)


def _read_published(warehouse: Warehouse) -> PublishedState:
    version = None
    try:
        version = warehouse.published()
        if version is None:
            return PublishedState()
        with closing(warehouse.open(version.number)) as db:
            return _read_version(db, version)
    except (PartnerSyncError, duckdb.Error) as error:
        return PublishedState(version, problem=printable(error))


def _read_version(db: duckdb.DuckDBPyConnection, version: Version) -> PublishedState:
    loaded: dict[ListName, list[LoadedScan]] = {}
    for connection, stream, *values in db.execute(LOADED).fetchall():
        loaded.setdefault(ListName(connection, stream), []).append(LoadedScan(*values))
    findings: dict[str, list[Finding]] = {}
    for scan_id, code, severity, *texts in db.execute(LOAD_FINDINGS).fetchall():
        findings.setdefault(scan_id, []).append(Finding(code, Severity(severity), *texts))
    quarantined = {
        ListName(connection, stream): records
        for connection, stream, records in db.execute(QUARANTINED).fetchall()
    }
    return PublishedState(version, "", loaded, quarantined, _count_not_fitting(db), findings)


def _count_not_fitting(db: duckdb.DuckDBPyConnection) -> dict[ListName, int]:
    counted: dict[ListName, int] = {}
    for (table,) in db.execute(HISTORIES).fetchall():
        stream = table.partition("__")[0]
        query = NOT_FITTING.format(table=quote_identifier(table))
        for connection, rows in db.execute(query).fetchall():
            name = ListName(connection, stream)
            counted[name] = counted.get(name, 0) + rows
    return counted
