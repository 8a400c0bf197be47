"""Homes with real files and scans of made-up records."""

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from pipelines.archive.scan_file import Exchange, ScanHeader
from pipelines.archive.store import Archive, scan_row
from pipelines.config.home import Home
from pipelines.config.settings import Settings
from pipelines.core.completeness import ListMemory, ReadBudget
from pipelines.metadata.engine import Metadata, this_process
from pipelines.metadata.runs import Outcome
from pipelines.metadata.scans import seal_scan
from pipelines.metadata.tables import Run, Scan, VersionRow
from pipelines.publish import stores as publish
from pipelines.publish.build import build
from pipelines.warehouse.duckdb_file import Warehouse
from tests.metadata.rows import PROOF

BEGIN = datetime(2026, 11, 1, 2, tzinfo=UTC)
DAY = timedelta(days=1)
Record = Mapping[str, Any]


@dataclass
class MovedClock:
    """A clock that the test moves."""

    now: datetime = BEGIN

    def time(self) -> float:
        return self.now.timestamp()

    def monotonic(self) -> float:
        return self.now.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass(frozen=True)
class Stores(publish.Stores):
    """Everything a build needs, of one home."""

    clock: MovedClock = field(default_factory=MovedClock)

    @classmethod
    def open(cls, folder: Path, **settings: Any) -> "Stores":
        home = Home(folder).prepare()
        return cls(
            Settings(home=home.root, **settings),
            Metadata.open(home.metadata_file),
            Archive(home.archive),
            Warehouse(home),
        )

    def rows(self, sql: str, number: int | None = None) -> list[tuple[Any, ...]]:
        """Return a query's rows from a version, the published one by default."""
        with closing(self.warehouse.open(number)) as db:
            return db.execute(sql).fetchall()

    def keys(self, number: int | None = None, stream: str = "usage") -> list[str]:
        """Return the keys of the current rows of a list."""
        return [
            row[0] for row in self.rows(f"SELECT _key FROM current.{stream} ORDER BY 1", number)
        ]

    def statuses(self) -> dict[str, str]:
        """Return the status of every scan."""
        with self.metadata.transaction() as session:
            return {scan.scan_id: scan.status for scan in session.query(Scan)}

    def versions(self) -> dict[int, str]:
        """Return the status of every version by number."""
        with self.metadata.transaction() as session:
            return {row.number: row.status for row in session.query(VersionRow)}


@dataclass(frozen=True)
class Reading:
    """What a scan found of a list."""

    records: Sequence[Record]
    stream: str = "usage"
    connection: str = "acme"
    complete: bool = True
    page_size: int = 2


def template_home(folder: Path, *, publish: bool) -> Path:
    """Make a home; with version 1 of ten rows of acme/usage, if `publish`."""
    stores = Stores.open(folder)
    if publish:
        read(stores, Reading(usage(*range(1, 11))))
        build(stores)
    stores.metadata.close()
    return folder


def copy_home(template: Path, folder: Path) -> Stores:
    """Open a copy of a home: cheaper than to make its tables and versions again."""
    shutil.copytree(template, folder, symlinks=True)
    stores = Stores.open(folder)
    with stores.metadata.transaction() as session:
        newest = session.query(Scan).order_by(Scan.started_at.desc()).first()
    stores.clock.now = newest.started_at if newest else BEGIN
    return stores


def usage(*ids: int, amount: str = "1.10") -> list[Record]:
    return [{"id": f"u{number}", "amount": amount, "lines": [{"n": number}]} for number in ids]


def add_run(stores: Stores, outcome: Outcome | None = Outcome.COMPLETE, **start: Any) -> str:
    """Add a run of a connection; one without an outcome has not ended."""
    now = stores.clock.now
    run_id = f"run-{now:%m%d%H%M%S}-{start.get('connection', 'acme')}"
    values = {"connection": "acme", "trigger": "command", "started_at": now, **start}
    if outcome is not None:
        values |= {"ended_at": now, "outcome": outcome}
    with stores.metadata.transaction() as session:
        session.add(Run(run_id=run_id, owner=this_process(), **values))
    return run_id


def read(stores: Stores, reading: Reading, run_id: str | None = None) -> str:
    """Write and seal a scan, a day after the one before; return its identifier."""
    stores.clock.now += DAY
    now = stores.clock.now
    header = ScanHeader(
        scan_id=f"{reading.stream}-{now:%m%d}",
        run_id=run_id or add_run(stores, connection=reading.connection),
        connection=reading.connection,
        stream=reading.stream,
        path=f"/v2/{reading.stream}",
        actor="partner",
        started_at=now,
        day=now.date(),
        configured_key=None,
        memory=ListMemory(),
        budget=ReadBudget(reading.page_size),
        algorithm=1,
    )
    with stores.metadata.transaction() as session:
        session.add(scan_row(header))
    file = stores.archive.create(header)
    used = {}
    for offset in range(0, len(reading.records), reading.page_size):
        page = reading.records[offset : offset + reading.page_size]
        number = file.append(_exchange(page, offset, now), durable=False)
        used[number] = ((0, len(page)),)
    proof = msgspec.structs.replace(
        PROOF,
        complete=reading.complete,
        rows=len(reading.records),
        not_seen=None if reading.complete else 3,
        reason="" if reading.complete else "the list changed too fast",
        requests=len(used),
        started_at=now,
        ended_at=now + timedelta(minutes=1),
        used=used,
    )
    sealed = file.seal(proof)
    with stores.metadata.transaction() as session:
        seal_scan(session, sealed.scan_id, proof, sealed.sha256)
    return sealed.scan_id


def _exchange(page: Sequence[Record], offset: int, at: datetime) -> Exchange:
    pagination = {"limit": 500, "offset": offset, "has_more": False, "next_offset": None}
    return Exchange(
        ask=1,
        sent=1,
        received=2,
        offset=offset,
        limit=500,
        purpose="page",
        status=200,
        sent_at=at,
        received_at=at,
        request_id="r1",
        headers={},
        body=json.dumps({"data": page, "pagination": pagination}).encode(),
    )
