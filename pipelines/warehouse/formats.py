"""The format of version files: its number, and the steps from each number to the next.

A version says its number in `meta.format`; one without that table has number 1. A build copies its
base and takes the missing steps on the copy, so a published file never changes. A file with a
higher number than ours was written by a newer partner-sync and is refused.

To change the format, write a function that changes an open version, add it at the end of STEPS, and
test it on rows as the format before has them. A step runs in a transaction with all others, on
every version that people still have; so it names tables and columns itself and calls no code that
may change later. It does not expect that a stream was ever loaded: tables may be missing.
"""

from collections.abc import Callable
from typing import Final

import duckdb

from pipelines.core.errors import UpgradeFailed
from pipelines.core.text import printable

CREATE_FORMAT: Final = """
CREATE SCHEMA IF NOT EXISTS meta;
CREATE TABLE IF NOT EXISTS meta.format (number INTEGER);
"""
HAS_FORMAT: Final = """
SELECT count(*)
FROM duckdb_tables() AS tables
WHERE tables.database_name = coalesce($1, current_database())
    AND (tables.schema_name, tables.table_name) = ('meta', 'format')
"""
IS_EMPTY: Final = """
SELECT count(*) = 0
FROM duckdb_tables() AS tables
WHERE tables.database_name = current_database() AND NOT tables.internal
"""
# What ends an upgrade although no step is wrong.
NOT_OF_THE_STEP: Final = (
    duckdb.OperationalError,
    duckdb.FatalException,
    duckdb.InterruptException,
)
Step = Callable[[duckdb.DuckDBPyConnection], object]


def add_format(db: duckdb.DuckDBPyConnection) -> None:
    """From 1 to 2: the version says its number."""
    db.execute(CREATE_FORMAT)


def add_chains(db: duckdb.DuckDBPyConnection) -> None:
    """From 2 to 3: a load says how many readings agree. NULL: not recorded."""
    db.execute("ALTER TABLE IF EXISTS meta.loads ADD COLUMN chains BIGINT")


def add_types(db: duckdb.DuckDBPyConnection) -> None:
    """From 3 to 4: a column says what it may become, and which type settings gave it.

    No candidates: other rules decided its type. A build then reads its rows again.
    """
    for column in ("candidates", "declared"):
        db.execute(f"ALTER TABLE IF EXISTS meta.columns ADD COLUMN IF NOT EXISTS {column} VARCHAR")


def drop_finance(db: duckdb.DuckDBPyConnection) -> None:
    """From 4 to 5: finance has files of its own, and remembers in the metadata database."""
    db.execute("DROP SCHEMA IF EXISTS finance CASCADE")
    db.execute("DROP SCHEMA IF EXISTS reconciliation CASCADE")


def add_connections(db: duckdb.DuckDBPyConnection) -> None:
    """From 5 to 6: a version says in which version the rows of each connection were last written.

    No row of a connection: not known. The build that takes this step knows it of all.
    """
    db.execute("CREATE SCHEMA IF NOT EXISTS meta")
    db.execute("CREATE TABLE IF NOT EXISTS meta.connections (connection VARCHAR, version INTEGER)")


STEPS: tuple[Step, ...] = (add_format, add_chains, add_types, drop_finance, add_connections)


def newest() -> int:
    """Return the number of the format that is written now."""
    return 1 + len(STEPS)


def read_format(db: duckdb.DuckDBPyConnection, database: str | None = None) -> int:
    """Return the number of the format of an open version, which may be attached as `database`."""
    if db.execute(HAS_FORMAT, [database]).fetchall() == [(0,)]:
        return 1
    table = f"{database}.meta.format" if database else "meta.format"
    ((number,),) = db.execute(f"SELECT format.number FROM {table} AS format").fetchall()
    return int(number)


def upgrade(db: duckdb.DuckDBPyConnection) -> None:
    """Take the steps that an open version lacks, and write its number; all of it, or nothing.

    A new, empty version only gets its number. Raises UpgradeFailed where a step fails, and
    duckdb.Error for what the disk or the memory limit refuses.
    """
    ((is_empty,),) = db.execute(IS_EMPTY).fetchall()
    before = newest() if is_empty else read_format(db)
    db.begin()
    try:
        for step in STEPS[before - 1 :]:
            step(db)
        db.execute(CREATE_FORMAT)
        db.execute("DELETE FROM meta.format")
        db.execute("INSERT INTO meta.format VALUES (?)", [newest()])
        db.commit()
    except NOT_OF_THE_STEP:
        raise  # the file is not kept
    except duckdb.Error as error:
        db.rollback()
        raise UpgradeFailed(
            f"A version of format {before} cannot be upgraded to format {newest()}: "
            f"{printable(error)}. Analysts still see the published version.",
            "Run `partner-sync versions rebuild`.",
        ) from error
