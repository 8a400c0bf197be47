"""DuckDB databases: how every one is opened, rewritten, and compared with what was written."""

from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.core.errors import LockHeld, StorageFailed
from pipelines.core.text import printable, quote_identifier

SETTINGS: Final[dict[str, Any]] = {
    "threads": 1,  # a second thread costs 40 % more CPU seconds on lists of this size
    "storage_compatibility_version": "v1.5.0",  # every DuckDB from 1.5 on can read it
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
LOCKED: Final = "Could not set lock"  # what DuckDB says; it has no error class for it
FREE_SHARE: Final = 3  # rewrite from one third free on
SMALLEST_BLOCKS: Final = 64  # 16 MB: below that there is nothing to gain
BLOCKS = """
SELECT size.total_blocks, size.free_blocks, size.database_name
FROM pragma_database_size() AS size
WHERE size.database_name = current_database()
"""
# Of records: our own columns, which hold key and digest, and the amounts. Reading all columns twice
# would cost 1.5 CPU seconds for a million rows.
TABLES = """
SELECT
    columns.schema_name,
    columns.table_name,
    list(columns.column_name ORDER BY columns.column_index),
    list(columns.column_name ORDER BY columns.column_index) FILTER (
        starts_with(columns.column_name, '_') OR starts_with(columns.data_type, 'DECIMAL')
    )
FROM duckdb_columns() AS columns
SEMI JOIN duckdb_tables() AS tables USING (database_oid, table_oid)
WHERE columns.database_name = current_database() AND NOT columns.internal
GROUP BY ALL
"""
# The hash reads every value: a count alone is known without reading a block.
TOTALS = "SELECT count(*), bit_xor(hash({columns})) FROM {table}"


def connect(file: Path, memory_limit: str, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file; create it where it does not exist and may be written.

    What does not fit into memory goes to a folder beside a file that is written. Readers have none:
    the names of two in one folder would collide. Raises LockHeld where another process writes the
    file, or this one opened it with other settings, StorageFailed where it is damaged or refused.
    """
    spill = "" if read_only else f"{file}.spill"
    settings = {**SETTINGS, "memory_limit": memory_limit, "temp_directory": spill}
    try:
        database = duckdb.connect(file, read_only=read_only, config=settings)
    except duckdb.Error as error:
        if LOCKED in str(error) or isinstance(error, duckdb.ConnectionException):
            raise LockHeld(f"{file} cannot be shared: {printable(error)}.") from error
        raise StorageFailed(
            f"{file} cannot be opened: {printable(error).rstrip('.!')}. No other file is affected.",
            "Run `partner-sync verify`. If the file is damaged, run `partner-sync versions "
            "rollback`.",
        ) from error
    database.execute("SET TimeZone = 'UTC'")
    return database


def close_compact(database: duckdb.DuckDBPyConnection, file: Path, *, rewrite: bool) -> None:
    """Close a file that was written. Rewrite it if a third of it is free and it is not small.

    With `rewrite`, it is rewritten in any case, so that nothing of deleted rows remains in it, and
    what fails raises duckdb.Error; otherwise the file stays where there is no room for another.
    Tables, views, macros and comments stay.
    """
    dense = file.with_name(f"{file.name}.dense")
    path = str(dense).replace("'", "''")
    with closing(database):
        database.execute("CHECKPOINT")
        total, free, name = database.execute(BLOCKS).fetchall()[0]
        if not rewrite and (total < SMALLEST_BLOCKS or free * FREE_SHARE < total):
            return
        with nullcontext() if rewrite else suppress(duckdb.Error):
            database.execute(f"ATTACH '{path}' AS dense")
            database.execute(f"COPY FROM DATABASE {quote_identifier(name)} TO dense; DETACH dense")
            dense.replace(file)


def control_totals(database: duckdb.DuckDBPyConnection) -> dict[str, tuple[int, int]]:
    """Return rows and a digest of their values, in any order, of every table by `schema.table`."""
    totals = {}
    for schema, table, columns, telling in database.execute(TABLES).fetchall():
        query = TOTALS.format(
            columns=", ".join(quote_identifier(column) for column in telling or columns),
            table=f"{quote_identifier(schema)}.{quote_identifier(table)}",
        )
        totals[f"{schema}.{table}"] = database.execute(query).fetchall()[0]
    return totals
