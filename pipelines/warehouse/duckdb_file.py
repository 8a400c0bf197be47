"""Here: how a DuckDB file is opened, read, compared and rewritten, and what its errors mean.

Not here: which files there are (version_files, books).
"""

import fcntl
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
from duckdb.sqltypes import DuckDBPyType

from pipelines.core.errors import LockHeld, StorageFailed
from pipelines.core.files import storing
from pipelines.core.text import is_one_of, printable, quote_identifier, quote_text
from pipelines.warehouse.memory_limit import MemoryLimit

PUBLISHED_FILE: Final = 0o444
BUILD: Final = "`partner-sync versions build`"  # goes on where a disk was full
SETTINGS: Final[dict[str, Any]] = {
    # A second thread costs 40 % more CPU seconds on lists of this size.
    "threads": 1,
    # Every DuckDB from 1.5 on can read it. Written for 1.1, a file of 300,000 rows took 0.80
    # instead of 0.59 to 0.69 CPU seconds.
    "storage_compatibility_version": "v1.5.0",
    # Nothing is fetched from the network.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    # Else a name in SQL could be a variable of ours.
    "python_enable_replacements": False,
}
# What DuckDB says of a file that another process writes; it has no error class for it.
LOCKED: Final = "Could not set lock"
FREE_SHARE: Final = 3  # rewrite from one third free on
SMALLEST_BLOCKS: Final = 64  # 16 MB: below that there is nothing to gain
BLOCKS: Final = """
SELECT size.total_blocks, size.free_blocks, size.block_size
FROM pragma_database_size() AS size
WHERE size.database_name = current_database()
"""
# Of records: our own columns, which hold key and digest, and the amounts. Reading all columns twice
# would cost 1.5 CPU seconds for a million rows. Amounts cost ten times as much as our own columns:
# DuckDB unpacks decimals slowly.
COMPARED_COLUMNS: Final = """
SELECT
    columns.schema_name,
    columns.table_name,
    list(columns.column_name ORDER BY columns.column_index),
    coalesce(list(columns.column_name ORDER BY columns.column_index) FILTER (
        starts_with(columns.column_name, '_')
    ), []),
    coalesce(list(columns.column_name ORDER BY columns.column_index) FILTER (
        NOT starts_with(columns.column_name, '_') AND starts_with(columns.data_type, 'DECIMAL')
    ), [])
FROM duckdb_columns() AS columns
SEMI JOIN duckdb_tables() AS tables USING (database_oid, table_oid)
WHERE columns.database_name = current_database()
GROUP BY ALL
"""
# The hash reads every value: a count alone is known without reading a block.
TOTALS: Final = "SELECT count(*), bit_xor(hash({columns})) FROM {table} AS rows WHERE {condition}"
# What DuckDB raises for a block that is not what was written, or is not there.
DAMAGE: Final = (
    duckdb.IOException,
    duckdb.SerializationException,
    duckdb.FatalException,
    duckdb.InternalException,
)
DAMAGED: Final = (
    "Run `partner-sync versions rebuild`, which sends no request, or `partner-sync versions "
    'rollback --reason "..."`, which publishes older rows.'
)
Row = dict[str, Any]
"""A row by the names of its columns."""


def connect(
    file: Path, memory_limit: MemoryLimit, *, read_only: bool = False
) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file; create it where it does not exist and may be written.

    What does not fit into memory goes to a folder beside a file that is written. Readers have none:
    the names of two in one folder would collide. Raises LockHeld where another process writes the
    file, or this one opened it with other settings, StorageFailed where it is damaged or refused.
    """
    spill = "" if read_only else f"{file}.spill"
    settings = {**SETTINGS, "memory_limit": memory_limit.text, "temp_directory": spill}
    try:
        db = duckdb.connect(file, read_only=read_only, config=settings)
    except duckdb.Error as error:
        if is_locked(error) or isinstance(error, duckdb.ConnectionException):
            raise LockHeld(f"{file} cannot be shared: {printable(error)}.") from error
        raise not_opened(file, error) from error
    db.execute("SET TimeZone = 'UTC'")
    return db


def connect_reader(file: Path, memory_limit: MemoryLimit) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file read-only. Raises StorageFailed.

    Opens a private copy where the file cannot be shared: another process has it open for writing,
    or this one with other settings.
    """
    with suppress(LockHeld):
        return connect(file, memory_limit, read_only=True)
    # A copy takes 0.3 s for 343 MB. It loses its name here; its content stays until the connection
    # is closed.
    with copied(file) as copy:
        return connect(copy, memory_limit, read_only=True)


def is_locked(error: duckdb.Error) -> bool:
    """Return whether DuckDB refused a file because another process has it open for writing."""
    return LOCKED in str(error)


def not_opened(file: Path, error: duckdb.Error) -> StorageFailed:
    """Return the error about a file that cannot be opened, for people."""
    return StorageFailed(
        f"{file} cannot be opened: {printable(error).rstrip('.!')}. No other file is affected.",
        f"If the file is damaged: {DAMAGED}",
    )


@contextmanager
def copied(file: Path) -> Iterator[Path]:
    """Yield a private copy beside a file, and delete its name at the end. Raises StorageFailed.

    This process holds it: a build deletes only the copies of killed readers.
    """
    with (
        storing(file.parent, BUILD),
        tempfile.NamedTemporaryFile(dir=file.parent, prefix=".v-copy-") as copy,
    ):
        fcntl.flock(copy, fcntl.LOCK_SH)
        shutil.copyfile(file, copy.name)
        yield Path(copy.name)


def fetch_rows(db: duckdb.DuckDBPyConnection, query: str, bound: Row | None = None) -> list[Row]:
    """Return the rows of a query by column."""
    cursor = db.execute(query, bound)
    names = [name for name, *_ in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def insert_row(db: duckdb.DuckDBPyConnection, table: str, row: Row) -> None:
    """Add a row to a table, by the names of its columns."""
    values = ", ".join(f"${name} AS {quote_identifier(name)}" for name in row)
    db.execute(f"INSERT INTO {table} BY NAME SELECT {values}", row)


def column_types(relation: duckdb.DuckDBPyRelation) -> dict[str, DuckDBPyType]:
    """Return the type of each column."""
    return dict(zip(relation.columns, relation.types, strict=True))


def decimal_scale(of_type: DuckDBPyType) -> int:
    """Return the digits behind the point of a type; 0 of one that is no decimal."""
    if of_type.id != "decimal":
        return 0
    scale: Any = dict(of_type.children)["scale"]
    return int(scale)


def bytes_in_use(db: duckdb.DuckDBPyConnection) -> int:
    """Return how long a file must be at least. DuckDB does not write free blocks at the end."""
    total, free, size = db.execute(BLOCKS).fetchall()[0]
    return int((total - free) * size)


def is_sparse(db: duckdb.DuckDBPyConnection) -> bool:
    """Return whether a third of a file is free as of its last checkpoint, and it is not small."""
    total, free, _size = db.execute(BLOCKS).fetchall()[0]
    return bool(total >= SMALLEST_BLOCKS and free * FREE_SHARE >= total)


def close(
    db: duckdb.DuckDBPyConnection, file: Path, *, is_rewritten: bool, must_rewrite: bool
) -> None:
    """Close a file that was written, and rewrite it without free blocks, where that is wanted.

    With `must_rewrite`, what fails raises duckdb.Error; otherwise the file stays where there
    is no room for another. Tables, views, macros and comments stay.
    """
    with db:
        db.execute("CHECKPOINT")
        if not is_rewritten:
            return
        try:
            _rewrite(db, file)
        except duckdb.Error:
            if must_rewrite:
                raise


def _rewrite(db: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Replace an open file by a copy without free blocks."""
    dense = file.with_name(f"{file.name}.dense")
    ((name,),) = db.execute("SELECT current_database()").fetchall()
    db.execute(f"ATTACH {quote_text(str(dense))} AS dense")
    db.execute(f"COPY FROM DATABASE {quote_identifier(name)} TO dense")
    db.execute("DETACH dense")
    dense.replace(file)


class Written(NamedTuple):
    """What a build wrote: tables of schema `history`, and whose rows; None: those of anybody."""

    tables: Collection[str]
    connections: Collection[str] | None


Totals = dict[str, list[tuple[int, int]]]
"""By `schema.table`: rows and a digest of their values, of one or several parts of the table."""


def control_totals(db: duckdb.DuckDBPyConnection, written: Written | None) -> Totals:
    """Return rows and a digest of their values, in any order.

    With `written`, without other tables of schema `history`, and with amounts of its connections
    only.
    """
    totals: Totals = {}
    for schema, table, columns, ours, amounts in db.execute(COMPARED_COLUMNS).fetchall():
        name = f"{quote_identifier(schema)}.{quote_identifier(table)}"
        connections = None
        if schema == "history" and written is not None:
            if table not in written.tables:
                continue
            connections = written.connections
        if not ours:
            parts = [_total(name, columns)]
        elif connections is None:
            parts = [_total(name, ours + amounts)]
        else:
            of_written = is_one_of("rows._connection", connections)
            parts = [_total(name, ours), _total(name, ours + amounts, of_written)]
        totals[f"{schema}.{table}"] = [db.execute(query).fetchall()[0] for query in parts]
    return totals


def _total(table: str, columns: Collection[str], condition: str = "true") -> str:
    names = ", ".join(f"rows.{quote_identifier(column)}" for column in columns)
    return TOTALS.format(columns=names, table=table, condition=condition)
