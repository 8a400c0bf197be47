"""The warehouse of several machines: DuckLake, its catalog in PostgreSQL, its data in a store.

Several connections fold at once, each in a scratch database of its own that begins with the
connection's rows and whose differences go back in one transaction (portion). Analysts attach the
catalog's schema `published` (snapshots). Here: opening the lake, and whose turn it is.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import duckdb

from pipelines.errors import ConfigurationError, StorageFailed, WarehouseBusy
from pipelines.settings import Home
from pipelines.state.locks import Locks
from pipelines.warehouse.database import LONGEST_WAIT, NO_EXTENSIONS, SPILL, Work, literal
from pipelines.warehouse.portion import FOLDED, LAKE, SCRATCH, Portion, swap

PUBLISHED = "published"  # the schema of the catalog that analysts see
EXTENSIONS = ("postgres_scanner", "ducklake", "httpfs")
FOLDING, WRITING = "folding", "writing"  # whose turns there are
KEYS = {
    "KEY_ID": "AWS_ACCESS_KEY_ID",
    "SECRET": "AWS_SECRET_ACCESS_KEY",
    "SESSION_TOKEN": "AWS_SESSION_TOKEN",
    "REGION": "AWS_REGION",  # or AWS_DEFAULT_REGION, the only one that the archive's client reads
}
WHOLE = 1_000_000  # bytes: a smaller file is asked for at once, not its columns one by one
TRIES = 20  # of a fold whose columns another connection changed meanwhile
Made = TypeVar("Made")


@dataclass(frozen=True)
class Lake:
    """The lake of a home; `waiting` is told once when another run holds it.

    A fold keeps others out of its connection only, until it writes what differs. Who publishes
    keeps others from writing, who is alone also from folding. `longest` is how many seconds each
    waits for its turn.
    """

    home: Home
    memory_limit: str
    waiting: Callable[[str], None]
    locks: Locks
    longest: float = LONGEST_WAIT

    @property
    def title(self) -> str:
        """What it is called where a fault is told."""
        return "the lake"

    @property
    def remedy(self) -> str:
        """What to do where it is damaged."""
        return (
            "Run `partner-sync replay --from DAY` with a day that was published: it is built again "
            "from the archive"
        )

    @property
    def there(self) -> bool:
        """Whether there is something to open; it is made where it is not."""
        return True

    @property
    def whole(self) -> bool:
        """Whether a fold has the rows of all connections, and brings all up to date."""
        return False

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other run from folding, writing and publishing; who is may ask again."""
        with self._turn(FOLDING), self._turn(WRITING):
            yield

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Keep every other run from writing and publishing."""
        with self._turn(WRITING):
            yield

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection that sees what was folded last; nobody has to wait for it."""
        with self.connected() as database:
            yield database

    @contextmanager
    def connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection in which the lake's tables have their plain names."""
        with in_words(), bare(self.home, self.memory_limit) as database:
            self._attach(database)
            database.execute(f"USE {LAKE}")
            yield database

    def fold(self, connection: str, act: Callable[[duckdb.DuckDBPyConnection], Made]) -> Made:
        """Return what `act` makes of a connection's rows, as plain tables; write what differs.

        Where another connection's fold changed the columns meanwhile, it is done again.
        """
        with self._turn(FOLDING, shared=True), self._turn(f"{FOLDING}-{connection}"):
            for _ in range(TRIES):
                file = self.home.work / f"fold-{uuid4().hex}.duckdb"
                try:
                    made = self._folded(file, connection, act)
                finally:
                    file.unlink(missing_ok=True)
                if made:
                    return made[0]
        raise WarehouseBusy(
            f"other connections changed the columns {TRIES} times while {connection} was folded; "
            "what was read is archived: run sync again"
        )

    def _folded(
        self, file: Path, connection: str, act: Callable[[duckdb.DuckDBPyConnection], Made]
    ) -> tuple[Made] | None:
        """Return what `act` made, None where the columns changed meanwhile."""
        with self._scratch(file) as database:
            portion = Portion(database, connection)
            with self._attached(database):
                marks = portion.take()
            made = act(database)
            with self._turn(WRITING), self._attached(database):
                return (made,) if portion.bring(marks) else None

    def beside(self, name: str) -> Work:
        """Return a plain database of that name in this machine's home."""
        return Work(self.home, self.memory_limit, self.waiting, name)

    def swap(self, fresh: Work) -> None:
        """Let the lake hold what a plain database holds, and nothing else; for who is alone."""
        with self._scratch(fresh.file) as database, self._attached(database):
            swap(database)

    def settle(self, writer: duckdb.DuckDBPyConnection) -> None:
        """Do nothing: what was committed is settled. DuckLake's CHECKPOINT drops old snapshots."""

    @contextmanager
    def _scratch(self, file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
        spill = f"{file.name}.{SPILL}"  # removed with what else a killed fold leaves
        with in_words(), bare(self.home, self.memory_limit, spill) as database:
            database.execute("PRAGMA disable_checkpoint_on_shutdown")  # nothing of it has to last
            wal = "RECOVERY_MODE no_wal_writes"
            database.execute(f"ATTACH {literal(str(file))} AS {SCRATCH} ({wal})")
            database.execute(f"USE {SCRATCH}")
            yield database

    @contextmanager
    def _attached(self, database: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Attach the lake to a scratch database as long as it is needed."""
        self._attach(database)
        yield
        database.execute(f"USE {SCRATCH}")
        database.execute(f"DETACH {LAKE}")

    def _attach(self, database: duckdb.DuckDBPyConnection) -> None:
        """Attach the lake; make it where it is not, one process at a time."""
        try:
            attach(database, self.home, "CREATE_IF_NOT_EXISTS false")
        except StorageFailed:
            with self._turn(WRITING):
                attach(database, self.home)

    @contextmanager
    def _turn(self, name: str, *, shared: bool = False) -> Iterator[None]:
        lock = self.locks.lock(name, shared=shared, again=True)
        if not lock.acquire():
            self.waiting(f"{lock.holder()} is writing the lake: waiting for it")
            if not lock.acquire(self.longest):
                raise WarehouseBusy(
                    f"{lock.holder()} has been writing the lake for {self.longest / 60:.0f} "
                    "minutes; what was read is archived: run sync again when it is over"
                )
        try:
            yield
        finally:
            lock.release()


def bare(
    home: Home, memory_limit: str | None = None, spill: str | None = None
) -> duckdb.DuckDBPyConnection:
    """Return a connection to nothing yet, in UTC; `spill` is a folder of its own in `work`.

    DuckDB writes over what another one spilled into the same folder.
    """
    database = duckdb.connect(
        config={
            **({"memory_limit": memory_limit} if memory_limit else {}),
            "threads": 1,
            "temp_directory": str(home.work / (spill or f"{SPILL}-{uuid4().hex}")),
            # Their signatures are checked once a process (_signed): that reads 100 MB, 0.6 CPU s.
            "allow_unsigned_extensions": True,
            **NO_EXTENSIONS,
        }
    )
    database.execute("SET TimeZone = 'UTC'")
    database.execute("SET enable_progress_bar = false")
    return database


def attach(
    database: duckdb.DuckDBPyConnection, home: Home, *options: str, schema: str = FOLDED
) -> None:
    """Attach the lake of a home as `lake`; raise StorageFailed where it cannot be reached.

    No rows are kept in the catalog: what analysts see of it are views of the tables there are.
    """
    _load(database)
    given = (
        f"METADATA_SCHEMA {literal(schema)}",
        f"DATA_PATH {literal(home.lake_data + '/')}",
        "DATA_INLINING_ROW_LIMIT 0",
        *options,
    )
    with in_words(duckdb.Error):
        database.execute(f"ATTACH {literal(home.warehouse)} AS {LAKE} ({', '.join(given)})")


def _load(database: duckdb.DuckDBPyConnection) -> None:
    """Load the extensions from their Python packages, and name the store's keys to DuckDB."""
    for file in _signed():
        database.execute(f"LOAD {literal(str(file))}")
    database.execute(f"SET force_download_threshold = {WHOLE}")
    given = {option: os.environ.get(name) for option, name in KEYS.items()}
    given["REGION"] = given["REGION"] or os.environ.get("AWS_DEFAULT_REGION")
    told = [f"{option} {literal(value)}" for option, value in given.items() if value]
    if address := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
        scheme, _, host = address.rpartition("://")
        told += [f"ENDPOINT {literal(host.rstrip('/'))}", "URL_STYLE 'path'"]
        told += ["USE_SSL false"] if scheme == "http" else []
    database.execute(f"CREATE OR REPLACE SECRET lake ({', '.join(('TYPE s3', *told))})")


@cache
def _signed() -> tuple[Path, ...]:
    """Return the files of the extensions, once DuckDB has found their signatures good."""
    files = tuple(map(_extension, EXTENSIONS))
    with duckdb.connect(config={**NO_EXTENSIONS}) as trial:
        for file in files:
            trial.execute(f"LOAD {literal(str(file))}")
    return files


def _extension(name: str) -> Path:
    """Return the file of an extension, for this DuckDB and no other."""
    found = find_spec(f"duckdb_extension_{name}")
    folder = Path(*found.submodule_search_locations or ()) if found else Path()
    file = folder / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
    if not found or not file.is_file():
        raise ConfigurationError(
            f"PARTNER_SYNC_WAREHOUSE is a lake, and DuckDB {duckdb.__version__}'s extension {name} "
            "is not installed: install partner-sync[distributed]. Nothing was done."
        )
    return file


@contextmanager
def in_words(kind: type[duckdb.Error] = duckdb.OperationalError) -> Iterator[None]:
    """Say what it means that PostgreSQL or the store does not answer, or memory is not enough."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise StorageFailed(
            f"the lake needs more memory than DuckDB may use: {error}. What was read is archived, "
            "and analysts see what they saw: raise PARTNER_SYNC_MEMORY_LIMIT, or take a "
            "machine that has more, and run it again."
        ) from None
    except kind as error:
        raise StorageFailed(
            f"the lake cannot be reached: {error}. What was read is archived, and analysts see "
            "what they saw: run it again when it answers."
        ) from None
