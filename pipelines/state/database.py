"""Opening the ledger: a file in the home, or the PostgreSQL that several machines share.

Not here: what PostgreSQL needs and says (postgresql), which tables there are (shape).
"""

import sqlite3
from pathlib import Path
from sqlite3 import Connection as SQLiteConnection

import filelock
from sqlalchemy import (
    URL,
    Connection,
    Engine,
    ExceptionContext,
    create_engine,
    event,
    func,
    select,
)

from pipelines.errors import StorageFailed
from pipelines.state import locks, postgresql, shape

STORAGE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
}


def trouble(error: BaseException) -> int:
    """Return SQLite's code where it is the disk's or another process's doing; 0 for a defect."""
    if not isinstance(error, sqlite3.OperationalError):
        return 0
    code = error.sqlite_errorcode & 0xFF  # without what SQLite adds in detail
    return code if code in STORAGE else 0


def in_words(error: BaseException) -> StorageFailed:
    """Say what it means that the ledger cannot be written."""
    return StorageFailed(
        f"the state database cannot be used: {error}. What was read until now is kept: make room, "
        "or end the process that hangs, and run sync again: it goes on."
    )


def _refuse(context: ExceptionContext) -> None:
    if trouble(context.original_exception):
        raise in_words(context.original_exception) from None


def _configure(connection: SQLiteConnection, _record: object) -> None:
    """Durable commits, readers beside one writer, and transactions that SQLAlchemy begins."""
    connection.isolation_level = None
    connection.execute("PRAGMA busy_timeout = 30000")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _begin(connection: Connection) -> None:
    """Begin where SQLAlchemy says so (the driver would begin late, and not for reads)."""
    connection.exec_driver_sql("BEGIN")


def connect(folder: Path, url: str | None = None) -> Engine:
    """Open (or create) the ledger: in the state folder, or in the database of a URL.

    Raises ConfigurationError for a ledger of another version's shape.
    """
    if url is not None:
        return _shared(url)
    file = folder / "state.sqlite"
    # Not as text: a "?" or "%" in the folder's name would mean something else there.
    engine = create_engine(URL.create("sqlite", database=str(file)))
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    event.listen(engine, "handle_error", _refuse)
    # SQLite does not wait where two processes make a new file WAL: one would fail, locked.
    with filelock.FileLock(folder / "state.lock"):
        _prepare(engine, str(file))
    return engine


def leave(ledger: Engine) -> None:
    """Close the ledger's file; connections to a server stay for the process's next session."""
    if ledger.dialect.name == "sqlite":
        ledger.dispose()


def _shared(url: str) -> Engine:
    engine = postgresql.engine(url)
    _prepare(engine, f"the database {engine.url.database}")
    return engine


def _prepare(engine: Engine, place: str) -> None:
    """Have the tables there; where that is refused, nothing of it stays."""
    try:
        with engine.begin() as ledger:
            if ledger.dialect.name == "postgresql":
                ledger.execute(select(func.pg_advisory_xact_lock(locks.key("shape"))))
            shape.prepare(ledger, place)
    except Exception:
        engine.dispose()
        raise
