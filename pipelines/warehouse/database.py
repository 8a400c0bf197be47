"""The work database: the pipeline's own DuckDB file, one writer at a time.

While a writer has it open nobody else can open it, so analysts get published copies instead.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa

from pipelines.errors import LandingFailed, WarehouseBusy, WarehouseDamaged
from pipelines.settings import Home
from pipelines.state.locks import Files, Lock, Locks
from pipelines.warehouse.link import fsync

Made = TypeVar("Made")
SPILL = "spill"  # the folder of what does not fit into memory
LONGEST_WAIT = 600.0  # seconds for another run to finish its fold and publication
# In this order: spilling is a file access that has to be allowed before all others are not.
HARDENED = (
    "SET TimeZone = 'UTC'",
    "SET enable_progress_bar = false",  # after two seconds it would write into what we print
    "SET enable_external_access = false",  # no statement reads or writes another file
    "SET lock_configuration = true",
)
# duckdb_tables() estimates rows: a lake asks its catalog for each table, 70 ms for fifty of them.
TABLES = """
SELECT schema_name, table_name, column_name, data_type
FROM duckdb_columns() c ANTI JOIN duckdb_views() v
ON (v.database_name, v.schema_name, v.view_name) = (c.database_name, c.schema_name, c.table_name)
WHERE database_name = coalesce($within, current_database()) AND NOT internal
ORDER BY schema_name, table_name, column_index
"""
NO_EXTENSIONS = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}


@dataclass(frozen=True)
class Work:
    """The work database of one home; `waiting` is told once when another run holds it.

    `longest` is how many seconds it is waited for then.
    """

    home: Home
    memory_limit: str
    waiting: Callable[[str], None]
    name: str = "warehouse.duckdb"
    longest: float = LONGEST_WAIT
    locks: Locks | None = None

    @property
    def file(self) -> Path:
        """Where the work database lies."""
        return self.home.work / self.name

    @property
    def title(self) -> str:
        """What it is called where a fault is told."""
        return f"work/{self.name}"

    @property
    def remedy(self) -> str:
        """What to do where it is damaged."""
        return f"Move {self.title} away and run sync: it is built again from the archive"

    @property
    def there(self) -> bool:
        """Whether there is something to open."""
        return self.file.exists()

    @property
    def whole(self) -> bool:
        """Whether a fold has the rows of all connections, and brings all up to date."""
        return True

    def fold(self, connection: str, act: Callable[[duckdb.DuckDBPyConnection], Made]) -> Made:
        """Return what `act` makes of the tables: those of all connections lie together."""
        del connection
        with self.writing() as writer:
            return act(writer)

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection, alone; wait for a run that has it, up to ten minutes."""
        with self.alone(), self.connected() as database:
            yield database

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other run from writing and publishing; wait as `writing` does.

        Who is alone may ask for it again: what is done in several steps is not come between.
        """
        locks = self.locks or Files(self.home.state)
        lock = locks.lock("warehouse", again=True)
        if not lock.acquire():
            self.waiting(f"{lock.holder()} is writing the warehouse: waiting for it")
            self._wait(lock)
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Keep every other run from writing and publishing."""
        with self.alone():
            yield

    def _wait(self, lock: Lock) -> None:
        if not lock.acquire(self.longest):
            raise WarehouseBusy(
                f"{lock.holder()} has been writing the warehouse for {self.longest / 60:.0f} "
                "minutes; what was read is archived: run sync again when it is over"
            )

    def connected(self) -> duckdb.DuckDBPyConnection:
        """Return a connection; for who is alone."""
        try:
            database = duckdb.connect(
                self.file,
                config={
                    "memory_limit": self.memory_limit,
                    # Small batches one after the other: a second thread costs 40 % more CPU here.
                    "threads": 1,
                    "temp_directory": str(self.home.work / SPILL),
                    # One format for every DuckDB that an analyst may have, whichever writes.
                    "storage_compatibility_version": "v1.4.0",
                    **NO_EXTENSIONS,
                },
            )
        except duckdb.IOException as error:
            if "set lock" in str(error):  # a damaged block is an IOException too
                raise WarehouseBusy(_open_elsewhere(error)) from None
            raise WarehouseDamaged(
                f"{self.file} cannot be opened: {error}. Move it away "
                "and run sync: it is built again from the archive."
            ) from None
        for statement in HARDENED:
            database.execute(statement)
        return database

    def settle(self, writer: duckdb.DuckDBPyConnection) -> None:
        """Let the file hold all that was written: it is copied when nobody has it open."""
        writer.execute("CHECKPOINT")

    def beside(self, name: str) -> "Work":
        """Return another database in the same folder."""
        return replace(self, name=name)

    def swap(self, fresh: "Work") -> None:
        """Put another file in this one's place, whose log must not be applied to it; one rename."""
        with suppress(WarehouseDamaged):
            if self.there:
                self.connected().close()  # what its log holds goes into the file
        self.file.with_name(f"{self.name}.wal").unlink(missing_ok=True)
        fresh.file.replace(self.file)
        fsync(self.file.parent)


def _open_elsewhere(error: duckdb.IOException) -> str:
    """Say who has the file open: DuckDB names the process where the system tells it."""
    found = re.search(r"\(PID (\d+)\)", str(error))
    process = f"process {found[1]}" if found else "another process"
    return (
        f"warehouse is open in {process}, which is no run of partner-sync. What was read is "
        "archived: close it there and run sync again. Analysts open warehouse.duckdb in the home, "
        "never the one in work/."
    )


@contextmanager
def reading(file: Path, memory_limit: str | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection that can only read a database file."""
    limits = {} if memory_limit is None else {"memory_limit": memory_limit}
    with duckdb.connect(file, read_only=True, config={**NO_EXTENSIONS, **limits}) as database:
        for statement in HARDENED:
            database.execute(statement)
        yield database


@contextmanager
def transaction(database: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Commit what the block did, or none of it."""
    database.begin()
    try:
        yield
        database.commit()
    except BaseException:
        with suppress(duckdb.TransactionException):  # a commit that failed rolled back already
            database.rollback()
        raise


def quoted(*names: str) -> str:
    """Return names as one SQL identifier: `current."usage__events"`."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def literal(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def listed(texts: Iterable[str]) -> str:
    """Return texts as SQL lists them."""
    return ", ".join(map(literal, texts))


def append(database: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    """Append rows, column by column by name; a column that they lack is NULL.

    Raises LandingFailed where the table does not hold as many rows more then. A registered view
    would hold every batch until the transaction ends (469 MB for a million rows).
    """
    before = scalar(database, f"SELECT count(*) FROM {table}")
    columns = database.execute(f"DESCRIBE {table}").fetchall()
    given = set(rows.column_names)
    values = [quoted(name) if name in given else f"NULL::{kind}" for name, kind, *_rest in columns]
    database.from_arrow(rows).project(", ".join(values)).insert_into(table)
    loaded = scalar(database, f"SELECT count(*) FROM {table}") - before
    if loaded != rows.num_rows:
        raise LandingFailed(f"of {rows.num_rows:,} rows {loaded:,} are in {table} after loading")


def fill(database: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Sequence[object]]) -> None:
    """Append rows of values in the order of the columns, all at once."""
    columns = database.sql(f"FROM {table} LIMIT 0").to_arrow_table().schema
    named = [dict(zip(columns.names, row, strict=True)) for row in rows]
    append(database, table, pa.Table.from_pylist(named, columns))


def together(database: duckdb.DuckDBPyConnection, statements: Iterable[str]) -> None:
    """Run statements at once: a call costs more than most of them."""
    database.execute("; ".join(statements))


def widen(database: duckdb.DuckDBPyConnection, table: str, empty: pa.Table) -> None:
    """Create the table, or give it the columns and types that it lacks; they only grow wider."""
    wanted = dict(zip(empty.column_names, database.from_arrow(empty).types, strict=True))
    columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in wanted.items())
    database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
    there = {name: kind for name, kind, *_rest in database.execute(f"DESCRIBE {table}").fetchall()}
    for name, kind in wanted.items():
        if name not in there:
            database.execute(f"ALTER TABLE {table} ADD COLUMN {quoted(name)} {kind}")
        elif there[name] != str(kind):
            database.execute(f"ALTER TABLE {table} ALTER {quoted(name)} SET DATA TYPE {kind}")


def exists(database: duckdb.DuckDBPyConnection, *table: str) -> bool:
    """Tell whether there is such a table or view, by naming it: to list them all takes 2 ms."""
    try:
        database.sql(f"FROM {quoted(*table)}")
    except duckdb.CatalogException:
        return False
    return True


def tables(
    database: duckdb.DuckDBPyConnection, within: str | None = None
) -> dict[tuple[str, str], dict[str, str]]:
    """Return the columns' types, in order, of every table that is no view and stays.

    By schema and name; `within` is an attached database, otherwise the current one.
    """
    found = dict[tuple[str, str], dict[str, str]]()
    rows = database.execute(TABLES, {"within": within}).fetchall()
    for schema, table, column, kind in rows:
        found.setdefault((schema, table), {})[column] = kind
    return found


def scalar(database: duckdb.DuckDBPyConnection, query: str, values: object = None) -> int:
    """Return the one number that a query gives."""
    return int(database.execute(query, values).fetchall()[0][0])
