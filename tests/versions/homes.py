"""Homes with real files and scans of made-up records."""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from pipelines.app.nightly import build_with_books
from pipelines.app.session import AppSession
from pipelines.archive.archive import Archive, scan_row
from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.config.settings import Settings
from pipelines.core.clock import Clock
from pipelines.core.proof import ListTraits, Ranges
from pipelines.core.text import Redactor
from pipelines.finance.reconciled import create_rows
from pipelines.metadata.engine import Metadata
from pipelines.metadata.processes import this_process
from pipelines.metadata.runs import Outcome
from pipelines.metadata.scans import ScanStatus, seal_scan, set_status
from pipelines.metadata.tables import Run, Scan, VersionRow
from pipelines.versions import version_scans
from pipelines.warehouse.books import BooksFolder
from pipelines.warehouse.version_files import Warehouse
from tests.archive.scans import HEADER, exchange, page, proof

BEGIN = datetime(2026, 11, 1, 2, tzinfo=UTC)
DAY = timedelta(days=1)
Record = Mapping[str, Any]
Make = Callable[["Stores"], object]
OpenHome = Callable[[Make], "Stores"]
SERVICE = {"surface": "merchant", "base_url": "https://example.com", "secret": "A_KEY"}

_MADE: dict[Make, "MadeHome"] = {}
_BEGUN: dict[Make, Make] = {}


class MovedClock(Clock):
    """A clock that the test moves."""

    now = BEGIN

    def time(self) -> float:
        return self.now.timestamp()


@dataclass(frozen=True)
class Stores(AppSession):
    """Everything that a build or a command needs, of one home."""

    clock: MovedClock = field(default_factory=MovedClock)
    redactor: Redactor = field(default_factory=Redactor)

    @classmethod
    def open(cls, folder: Path, **settings: Any) -> "Stores":
        home = Home(folder).prepare()
        return cls(
            Settings(home=home, **settings),
            Metadata.open(home.metadata_file),
            Archive(home.archive),
            Warehouse(home),
        )

    def changed(self, **settings: Any) -> "Stores":
        """Return the same home with other settings."""
        return replace(self, settings=self.settings.model_copy(update=settings))

    def configure(self, connection: str = "acme", **service: str) -> None:
        """Add a connection to the file of connections; of a merchant, no list is expected."""
        add_connection(self.home.connections_file, connection, service or SERVICE)

    def rows(self, sql: str, number: int | None = None) -> list[tuple[Any, ...]]:
        """Return a query's rows from a version and its books, the published ones by default."""
        folder = BooksFolder(self.warehouse)
        version = self.warehouse.version(number) if number else self.warehouse.published()
        assert version
        with folder.open(folder.newest_of(version.number), version) as db:
            if "temp." in sql:
                create_rows(db)
            return db.execute(sql).fetchall()

    def keys(self, number: int | None = None, stream: str = "usage") -> list[str]:
        """Return the keys of the current rows of a list."""
        found = self.rows(f"SELECT _key FROM current.{stream} ORDER BY 1", number)
        return [key for (key,) in found]

    def statuses(self) -> dict[str, str]:
        """Return the status of every scan."""
        with self.metadata.transaction() as session:
            return {scan.scan_id: scan.status for scan in session.query(Scan)}

    def set_status(self, scan_id: str, status: ScanStatus, reason: str | None = None) -> None:
        with self.metadata.transaction() as session:
            set_status(session, scan_id, status, reason)

    def versions(self) -> dict[int, str]:
        """Return the status of every version by number; of the checkpoint, that it is this."""
        with self.metadata.transaction() as session:
            found = {row.number: row.status for row in session.query(VersionRow)}
        kept = version_scans.checkpoint(self)
        return found | ({kept.number: "checkpoint"} if kept else {})


@dataclass(frozen=True)
class Reading:
    """What a scan found of a list."""

    records: Sequence[Record]
    stream: str = "usage"
    connection: str = "acme"
    complete: bool = True
    page_size: int = 2
    key: str | None = "id"
    reason: str = "the list changed too fast"  # if it is not complete


def goes_on_from(begin: Make) -> Callable[[Make], Make]:
    """Let a function that makes a home begin with a copy of the home of another one."""

    def decorate(make: Make) -> Make:
        _BEGUN[make] = begin
        return make

    return decorate


@dataclass(frozen=True)
class MadeHome:
    """A home that a function made, and the time then. Tests copy it."""

    root: Path
    now: datetime

    def copied(self, folder: Path) -> Stores:
        """Return a copy, at the same time."""
        copy = Stores.open(shutil.copytree(self.root, folder, symlinks=True))
        copy.clock.now = self.now
        return copy


def made_home(factory: pytest.TempPathFactory, make: Make) -> MadeHome:
    """Return the home that a function makes: once for all processes that run tests."""
    if make not in _MADE:
        root = _folder_of_run(factory) / f"{make.__module__}.{make.__qualname__}"
        with root.with_name(f"{root.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _MADE[make] = _made_once(factory, make, root)
    return _MADE[make]


def _made_once(factory: pytest.TempPathFactory, make: Make, root: Path) -> MadeHome:
    time = root.with_name(f"{root.name}.time")
    if not time.exists():
        begin = _BEGUN.get(make)
        stores = made_home(factory, begin).copied(root) if begin else Stores.open(root)
        make(stores)
        stores.metadata.close()
        time.write_text(stores.clock.now.isoformat())
    return MadeHome(root, datetime.fromisoformat(time.read_text()))


def _folder_of_run(factory: pytest.TempPathFactory) -> Path:
    """Return a folder of this run of the tests, whichever of its processes asks."""
    base = factory.getbasetemp()
    is_one_of_several = "PYTEST_XDIST_WORKER" in os.environ
    folder = (base.parent if is_one_of_several else base) / "made"
    folder.mkdir(exist_ok=True)
    return folder


def home_of(make: Make) -> Any:
    """Return a fixture: a copy of the home that a function makes."""

    @pytest.fixture
    def home(open_home: OpenHome) -> Stores:
        return open_home(make)

    return home


def usage(*ids: int, amount: str = "1.10") -> list[Record]:
    return [{"id": f"u{number}", "amount": amount, "lines": [{"n": number}]} for number in ids]


def list_state(state: Outcome | None, message: str = "", remedy: str = "") -> dict[str, str]:
    return {"state": state or Outcome.INTERRUPTED, "message": message, "remedy": remedy}


def add_run(stores: Stores, outcome: Outcome | None = Outcome.COMPLETE, **start: Any) -> str:
    """Add a run of a connection that reads usage; one without an outcome has not ended."""
    now = stores.clock.now
    run_id = f"run-{now:%m%d%H%M%S}-{start.get('connection', 'acme')}"
    values = {"connection": "acme", "trigger": "command", "started_at": now, **start}
    values.setdefault("lists", {"usage": list_state(outcome, "Not read.", "Read it again.")})
    if outcome is not None:
        values |= {"ended_at": now, "outcome": outcome}
    with stores.metadata.transaction() as session:
        session.add(Run(run_id=run_id, owner=this_process(), **values))
    return run_id


def read(stores: Stores, reading: Reading, run_id: str | None = None) -> str:
    """Write and seal a scan, a day after the one before; return its identifier."""
    stores.clock.now += DAY
    now, size = stores.clock.now, reading.page_size
    header = structs.replace(
        HEADER,
        scan_id=f"{reading.stream}-{now:%m%d}",
        run_id=run_id or add_run(stores, connection=reading.connection),
        connection=reading.connection,
        stream=reading.stream,
        started_at=now,
        day=now.date(),
    )
    file = stores.archive.create(header)
    used: dict[int, Ranges] = {}
    for offset in range(0, len(reading.records), size):
        records = [json.dumps(each).encode() for each in reading.records[offset : offset + size]]
        sent = structs.replace(exchange(page(*records)), offset=offset)
        used[file.append(sent, durable=False)] = ((0, len(records)),)
    missing = {} if reading.complete else {"not_seen": 3, "reason": reading.reason}
    sealed = file.seal(
        structs.replace(
            proof(used),
            complete=reading.complete,
            rows=len(reading.records),
            requests=len(used),
            started_at=now,
            ended_at=now + timedelta(minutes=1),
            traits=ListTraits(key=reading.key, key_decided=True),
            **missing,
        )
    )
    with stores.metadata.transaction() as session:
        session.add(scan_row(header))
        seal_scan(session, sealed.scan_id, sealed.completeness, sealed.sha256)
    return sealed.scan_id


def publish_ten(stores: Stores) -> None:
    stores.configure()
    read(stores, Reading(usage(*range(1, 11))))
    build_with_books(stores)
